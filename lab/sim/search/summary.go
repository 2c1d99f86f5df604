package search

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/server/console"
)

// maxShown limits the violations in the text; ten are enough for a pattern. The JSON has all.
const maxShown = 10

// text formats the report for a terminal: the coverage first, and the result last, next to the prompt.
func (r *report) text(width int) string {
	var out strings.Builder
	section := func(title string, names []string, count func(name string) console.Entry) {
		var entries []console.Entry
		for _, name := range names {
			entries = append(entries, count(name))
		}
		if len(entries) > 0 {
			fmt.Fprintf(&out, "%s\n%s\n", console.Heading(title), console.Grid(entries, width))
		}
	}
	taken := maps.Clone(r.Branches)
	maps.DeleteFunc(taken, func(_ string, n uint64) bool { return n == 0 })
	section("Worlds", sorted(r.Worlds), r.Worlds.entry)
	section("Checks, by invariant", sorted(r.ByCheck), r.ByCheck.entry)
	section("Faults injected", sorted(r.mix), r.Faults.entry)
	section("Branches taken", sorted(taken), taken.entry)
	section("Notes of machines", sorted(r.Notices), r.Notices.entry)
	section("Branches never taken", r.Missed, func(name string) console.Entry { return console.Entry{name} })
	fmt.Fprintf(&out, "%s\n%s\n", console.Heading("Summary"), r.overview())
	for _, f := range r.Failures[:min(len(r.Failures), maxShown)] {
		out.WriteString(f.text())
	}
	if more := len(r.Failures) - maxShown; more > 0 {
		fmt.Fprintf(&out, "and %d more, which --json lists\n\n", more)
	}
	out.WriteString(r.verdict() + "\n")
	return out.String()
}

func (r *report) overview() string {
	seeds := console.Grouped(uint64(r.Seeds))
	if r.Ended != completed {
		seeds += " of " + console.Grouped(uint64(r.planned))
	}
	lines := []console.Entry{
		{"seeds", fmt.Sprintf("%s, from %d", seeds, r.FirstSeed)},
		{"simulated", fmt.Sprintf("%.1f h in %.1f s", r.Hours, r.Elapsed)},
		{"speed-up", console.Grouped(uint64(r.Speedup)) + "x"},
		{"events", console.Grouped(r.Events)},
		{"messages", console.Grouped(r.Messages)},
		{"checks", console.Grouped(r.Checks)},
		{"trace hash", r.Hash},
		{"violations", console.Grouped(uint64(r.Failed))},
	}
	if r.Mutant != "" {
		lines = slices.Insert(lines, 0, console.Entry{"planted bug", r.Mutant})
	}
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "  %-11s  %s\n", l[0], l[1])
	}
	return out.String()
}

func (r *report) verdict() string {
	found := console.Good("no violation")
	if r.Failed > 0 {
		found = console.Bad(console.Counted(r.Failed, "violation"))
	}
	line := fmt.Sprintf("%s in %s", found, console.Counted(r.Seeds, "world"))
	if r.Ended != completed {
		line += fmt.Sprintf("; %s before the other %s", r.Ended, console.Grouped(uint64(r.planned-r.Seeds)))
	}
	return line
}

func (f failure) text() string {
	return fmt.Sprintf("%s  seed %d, %s, at %s\n%s\n  %s\n\n",
		console.Bad("VIOLATION"), f.Seed, f.Invariant, f.At, indented(f.Text), "replay: "+f.Replay)
}

// survived reports that no check has detected the planted bug.
func (s *Job) survived() string {
	return fmt.Sprintf("%s  The planted bug %s was not detected in %s.\nThe worlds are too few or the wrong ones, or a check is missing.\n",
		console.Bad("MUTANT SURVIVED"), s.Planted, console.Counted(s.Seeds, "world"))
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

func (t tally) entry(name string) console.Entry { return console.Entry{name, console.Grouped(t[name])} }

func sorted[V any](of map[string]V) []string { return slices.SortedFunc(maps.Keys(of), inOrder) }

// inOrder sorts I2 before I10, and all other names after them.
func inOrder(a, b string) int {
	number := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "I%d ", &n); err != nil {
			return math.MaxInt
		}
		return n
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
}
