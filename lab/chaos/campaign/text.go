package campaign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/server/console"

	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/lab/chaos"
	"github.com/leasehold-dev/leasehold/lab/chaos/nemesis"
)

// KindsHelp, as a kind of fault, lists them.
const KindsHelp = "help"

// KindsText lists the kinds of faults.
func KindsText() string {
	lines := []console.Entry{{"FAULT", "EFFECT"}}
	for _, f := range nemesis.All() {
		text := f.Text
		if f.Takes != "" {
			text += " (requires " + f.Takes + ")"
		}
		lines = append(lines, console.Entry{f.Name, text})
	}
	title, rest, _ := strings.Cut(console.Facts(lines), "\n")
	return console.Heading(title) + "\n" + rest
}

// KindNames returns the values of --kinds.
func KindNames() []string {
	names := []string{KindsHelp}
	for _, f := range nemesis.All() {
		names = append(names, f.Name)
	}
	return names
}

// reportText formats a report for a number of columns; 0: any number.
func reportText(r *chaos.Report, width int) string {
	rec, c, interrupted := &r.Recoveries, &r.Checked, ""
	if r.Interrupted {
		interrupted = ", interrupted"
	}
	var lines []console.Entry
	add := func(name, format string, args ...any) {
		lines = append(lines, console.Entry{name, fmt.Sprintf(format, args...)})
	}
	addIf := func(shown bool, name, format string, args ...any) {
		if shown {
			add(name, format, args...)
		}
	}
	add("run", "store %s, seed %d, %.1f s, %s%s", r.Store, r.Seed, r.Seconds, console.Counted(r.Storms, "storm"), interrupted)
	add("faults", "%s: %s", console.Counted(r.Faults, "fault"), byKind(r.ByKind))
	add("recovery", "%s", recoveryText(rec))
	add("checked", "%s, %s (I1, I2), %s for callers, %d of them late, and %s without contact (I4), %s (I5), %s of registers under %s (linearizable; %d undecided)",
		console.Counted(c.Tenures, "tenure"), console.Counted(c.Generations, "generation"), console.Counted(c.Losses, "loss"), c.Late, console.Counted(c.Cuts, "period"),
		console.Counted(c.Tables, "table"), console.Counted(c.Calls, "answer"), console.Counted(c.Histories, "lease"), c.Undecided)
	add("packets", "%s passed, %s delayed, %s repeated, %s dropped",
		console.Grouped(r.Packets.Passed), console.Grouped(r.Packets.Delayed), console.Grouped(r.Packets.Duplicated), console.Grouped(r.Packets.Dropped))
	addIf(c.Outages > 0, "outages", "after %s without permitted losses, %s keys had the same lease as before, and a recall had transferred %s keys to another owner (I11)",
		console.Counted(c.Outages, "outage"), console.Grouped(uint64(c.Kept)), console.Grouped(uint64(c.Reassigned)))
	addIf(len(r.Builds) > 1, "builds", "%s", strings.Join(r.Builds, "; "))
	addIf(rec.Forgotten > 0, "", "%d times most managers had lost their memory: B is then %.0f ms", rec.Forgotten, rec.WiderMillis)
	addIf(r.Revived+r.Created > 0, "also", "processes that ended by themselves and were restarted: %d; namespaces lost with all managers and created again: %d",
		r.Revived, r.Created)
	addIf(len(r.RevivedBy) > 0, "restarts", "%s", byKind(r.RevivedBy))
	addIf(r.Unbounded, "hosts", "the retransmission timeout of TCP is not bounded, which may delay recoveries: a bound requires Linux 6.15")
	addIf(r.Excused+r.Noticed > 0, "clocks", "owners detected slow clocks and dropped their leases %d times; violations excused by clocks beyond the bound: %d (I1, I4, I6)",
		r.Noticed, r.Excused)
	addIf(c.Writes > 0, "fence", "%s accepted, %d refused (I9)", console.Counted(c.Writes, "write"), c.Refused)
	addIf(len(r.Vitals)+r.ShortLives > 0, "vitals", "%s", vitalsText(r))
	add("violations", "%s", violationsText(r))
	addIf(r.Kept != "", "kept", "%s; README describes it", r.Kept)
	return console.Heading("Chaos") + "\n" + console.Facts(inLines(lines, width))
}

// recoveryText describes the times after storms until every key had an owner.
func recoveryText(rec *chaos.Recoveries) string {
	if rec.Count == 0 {
		return "no completed storm"
	}
	text := fmt.Sprintf("every key had an owner within %.0f ms after half of the storms, %.0f ms after 99 %%, %.0f ms after all; %d of %d within B, which is %.0f ms (I6)",
		rec.Median, rec.P99, rec.Max, rec.WithinBound, rec.Count, rec.BoundMillis)
	for i, l := range rec.Late {
		if i == mostLate {
			return text + fmt.Sprintf("\n%d more", len(rec.Late)-i)
		}
		text += fmt.Sprintf("\nlate: %.0f ms after storm %d, where the store had a leader after %.0f ms", l.Millis, l.Storm, l.StoreMillis)
	}
	return text
}

const mostLate = 10

// inLines breaks long texts into lines, below each other.
func inLines(lines []console.Entry, width int) (out []console.Entry) {
	name := 0
	for _, e := range lines {
		name = max(name, len(e[0]))
	}
	for _, e := range lines {
		for line := range strings.SplitSeq(e[1], "\n") {
			for _, part := range atSpaces(line, width-name-2) {
				out = append(out, console.Entry{e[0], part})
				e[0] = ""
			}
		}
	}
	return out
}

// atSpaces breaks a text at spaces only: the names of faults contain hyphens, and are not broken.
func atSpaces(text string, width int) (lines []string) {
	if width < leastText || lipgloss.Width(text) <= width {
		return []string{text}
	}
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && lipgloss.Width(line+" "+word) > width {
			lines, line = append(lines, line), word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

const leastText = 20

// vitalsText has the medians of the second and the last quarter of the samples of each process, and the allowed value.
func vitalsText(r *chaos.Report) string {
	if len(r.Vitals) == 0 {
		return console.Bad(fmt.Sprintf("not judged: none of %d processes had enough samples; use --for 5m or longer (I8)", r.ShortLives))
	}
	lines := []string{fmt.Sprintf("medians of the second and the last quarter, and the allowed value; %d other processes had too few samples", r.ShortLives)}
	for _, c := range r.Vitals {
		scale, unit := 1.0, ""
		if strings.HasPrefix(c.What, "bytes") {
			scale, unit = 1<<20, " MiB"
		}
		line := fmt.Sprintf("%-6s %-16s %8.1f%s %8.1f%s (%.1f) of %s", c.Process, strings.TrimPrefix(c.What, "bytes of "),
			c.Early/scale, unit, c.Late/scale, unit, c.Allowed/scale, console.Counted(c.Samples, "sample"))
		if !c.Flat() {
			line = console.Bad(line)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func byKind(faults map[string]int) string {
	var words []string
	for name, n := range faults {
		words = append(words, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func violationsText(r *chaos.Report) string {
	if len(r.Violations) == 0 {
		return "none"
	}
	var lines []string
	for _, v := range r.Violations {
		lines = append(lines, console.Bad(v.String()))
	}
	return strings.Join(lines, "\n")
}

// share returns the completed part of a run, by time or by faults, whichever is further.
func share(s chaos.Snapshot) float64 {
	done := 0.0
	if s.Of > 0 {
		done = float64(s.Elapsed) / float64(s.Of)
	}
	if s.Enough > 0 {
		done = max(done, float64(s.Faults)/float64(s.Enough))
	}
	return min(1, done)
}

// numbers formats the progress of a run.
func numbers(s chaos.Snapshot) string {
	at, faults := s.Elapsed.Round(time.Second).String(), console.Counted(s.Faults, "fault")
	if s.Of > s.Elapsed {
		at += fmt.Sprintf(" of ~%v", s.Of.Round(time.Second))
	}
	if s.Enough > 0 {
		faults = fmt.Sprintf("%d of %s", s.Faults, console.Counted(s.Enough, "fault"))
	}
	text := fmt.Sprintf("%s: %s, %s, %s, %s", s.Store, at, console.Counted(s.Storms, "storm"), faults, s.Doing)
	if s.Broken {
		text += ", " + console.Bad("VIOLATION")
	}
	return text
}
