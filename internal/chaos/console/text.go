package console

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/leasehold-dev/leasehold/internal/chaos"
	"github.com/leasehold-dev/leasehold/internal/chaos/nemesis"
)

// An entry is a line of a report.
type entry struct{ name, value string }

// facts lists names and values, one on a line.
func facts(entries []entry) string {
	width := 0
	for _, e := range entries {
		width = max(width, len(e.name))
	}
	var out strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&out, "%-*s  %s\n", width, e.name, e.value)
	}
	return out.String()
}

func heading(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }
func bad(s string) string     { return lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true).Render(s) }

// counted is a number and its noun: 1 storm, 2,000 storms.
func counted(n int, noun string) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, noun, "")
}

func grouped(n uint64) string { return humanize.Comma(int64(n)) }

// KindsHelp, as a kind of fault, asks for a list of them.
const KindsHelp = "help"

// KindsText lists the kinds of faults.
func KindsText() string {
	lines := []entry{{"FAULT", "WHAT HAPPENS"}}
	for _, f := range nemesis.All() {
		text := f.Text
		if f.Takes != "" {
			text += " (takes " + f.Takes + ")"
		}
		lines = append(lines, entry{f.Name, text})
	}
	title, rest, _ := strings.Cut(facts(lines), "\n")
	return heading(title) + "\n" + rest
}

// KindNames are the values of --kinds.
func KindNames() []string {
	names := []string{KindsHelp}
	for _, f := range nemesis.All() {
		names = append(names, f.Name)
	}
	return names
}

// reportText is a report for a terminal with so many columns; 0: any number.
func reportText(r *chaos.Report, width int) string {
	rec := &r.Recoveries
	lines := []entry{
		{"run", fmt.Sprintf("store %s, seed %d, %.1f s, %s%s", r.Store, r.Seed, r.Seconds, counted(r.Storms, "storm"), cutShort(r))},
		{"faults", fmt.Sprintf("%s: %s", counted(r.Faults, "fault"), byKind(r.ByKind))},
		{"recovery", recoveryText(rec)},
		{"checked", fmt.Sprintf("%s, %s (I1, I2), %s to be told of losses, %d of them late, and %s of silence (I4), %s (I5), %s of registers under %s (linearizable; %d undecided)",
			counted(r.Checked.Tenures, "tenure"), counted(r.Checked.Generations, "generation"), counted(r.Checked.Losses, "occasion"),
			r.Checked.Late, counted(r.Checked.Cuts, "time"),
			counted(r.Checked.Tables, "table"), counted(r.Checked.Calls, "answer"), counted(r.Checked.Histories, "lease"), r.Checked.Undecided)},
		{"packets", fmt.Sprintf("%s passed, %s delayed, %s repeated, %s dropped",
			grouped(r.Packets.Passed), grouped(r.Packets.Delayed), grouped(r.Packets.Duplicated), grouped(r.Packets.Dropped))},
	}
	if c := r.Checked; c.Outages > 0 {
		lines = append(lines, entry{"outages", fmt.Sprintf("after %s that may lose nothing, keys had the same lease as before %s times, and a recall had given them to another owner %s times (I11)",
			counted(c.Outages, "outage"), grouped(uint64(c.Kept)), grouped(uint64(c.Reassigned)))})
	}
	if len(r.Builds) > 1 {
		lines = append(lines, entry{"builds", strings.Join(r.Builds, "; ")})
	}
	if rec.Forgotten > 0 {
		lines = append(lines, entry{"", fmt.Sprintf("%d times most managers had lost their memory: then B is %.0f ms", rec.Forgotten, rec.WiderMillis)})
	}
	if r.Revived+r.Created > 0 {
		lines = append(lines, entry{"also", fmt.Sprintf("processes that ended by themselves and were started again: %d; times that the namespace was gone with all managers and was created anew: %d",
			r.Revived, r.Created)})
	}
	if r.Unbounded {
		lines = append(lines, entry{"hosts", "TCP waits for as long as it likes before it sends again, which may make recoveries late: to bound that takes Linux 6.15"})
	}
	if r.Excused+r.Noticed > 0 {
		lines = append(lines, entry{"clocks", fmt.Sprintf("owners found their clocks too slow and dropped their leases %d times; what clocks beyond the bound are to blame for: %d times (I1, I4, I6)",
			r.Noticed, r.Excused)})
	}
	if c := r.Checked; c.Writes > 0 {
		lines = append(lines, entry{"fence", fmt.Sprintf("%s accepted, %d refused (I9)", counted(c.Writes, "write"), c.Refused)})
	}
	if len(r.Vitals)+r.ShortLives > 0 {
		lines = append(lines, entry{"vitals", vitalsText(r)})
	}
	lines = append(lines, entry{"violations", violationsText(r)})
	if r.Kept != "" {
		lines = append(lines, entry{"kept", r.Kept + ", where README says what is what"})
	}
	return heading("Chaos") + "\n" + facts(inLines(lines, width))
}

func cutShort(r *chaos.Report) string {
	if r.Interrupted {
		return ", interrupted"
	}
	return ""
}

// recoveryText says how long it took after storms until every key had an owner.
func recoveryText(rec *chaos.Recoveries) string {
	if rec.Count == 0 {
		return "no storm was waited out"
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

// mostLate is how many recoveries are listed that were late.
const mostLate = 10

// inLines breaks what is too long for a terminal into lines, under each other.
func inLines(lines []entry, width int) (out []entry) {
	name := 0
	for _, e := range lines {
		name = max(name, len(e.name))
	}
	for _, e := range lines {
		for line := range strings.SplitSeq(e.value, "\n") {
			for _, part := range atSpaces(line, width-name-2) {
				out = append(out, entry{e.name, part})
				e.name = ""
			}
		}
	}
	return out
}

// atSpaces breaks a text at spaces: the names of faults have hyphens, and stay whole.
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

// leastText is how narrow a column of text may be.
const leastText = 20

// vitalsText is what processes took to live, in the second and in the last quarter of their
// lives, each with the most that it may have been.
func vitalsText(r *chaos.Report) string {
	if len(r.Vitals) == 0 {
		return bad(fmt.Sprintf("not judged: none of %d processes lived long enough to say; run it for 5m at least (I8)", r.ShortLives))
	}
	lines := []string{fmt.Sprintf("medians of the second and the last quarter, and what was allowed; %d other processes lived too short to say", r.ShortLives)}
	for _, c := range r.Vitals {
		scale, unit := 1.0, ""
		if strings.HasPrefix(c.What, "bytes") {
			scale, unit = 1<<20, " MiB"
		}
		line := fmt.Sprintf("%-6s %-16s %8.1f%s %8.1f%s (%.1f) of %s", c.Process, strings.TrimPrefix(c.What, "bytes of "),
			c.Early/scale, unit, c.Late/scale, unit, c.Allowed/scale, counted(c.Samples, "sample"))
		if !c.Flat() {
			line = bad(line)
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
		lines = append(lines, bad(v.String()))
	}
	return strings.Join(lines, "\n")
}
