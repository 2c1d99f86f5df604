package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// maxShown bounds the violations in the text; ten show a pattern, if there is
// one. The JSON has all.
const maxShown = 10

// text writes the report for people: what was tested first, and what came out
// of it last, where the eye is when the command is done.
func (r *simReport) text(width int) string {
	var out strings.Builder
	section := func(title string, entries []entry) {
		if len(entries) > 0 {
			fmt.Fprintf(&out, "%s\n%s\n", heading(title), grid(entries, width))
		}
	}
	section("Checks, by invariant", counts(r.ByCheck, r.ByCheck))
	section("Faults that struck", counts(r.faultsInMix(), r.Faults))
	section("Branches taken", r.branchesTaken())
	section("Branches never taken", names(r.Missed))
	fmt.Fprintf(&out, "%s\n%s\n", heading("Summary"), r.overview())
	for _, f := range r.Failures[:min(len(r.Failures), maxShown)] {
		out.WriteString(f.text())
	}
	if more := len(r.Failures) - maxShown; more > 0 {
		fmt.Fprintf(&out, "and %d more, which --json lists\n\n", more)
	}
	out.WriteString(r.verdict() + "\n")
	return out.String()
}

// faultsInMix has the kinds of faults that could strike.
func (r *simReport) faultsInMix() tally {
	possible := tally{}
	for f := range r.mix {
		possible[f.String()] = 0
	}
	return possible
}

func (r *simReport) branchesTaken() []entry {
	taken := maps.Clone(r.Branches)
	maps.DeleteFunc(taken, func(_ string, n uint64) bool { return n == 0 })
	return counts(taken, taken)
}

// overview is one line for each of the numbers of the campaign.
func (r *simReport) overview() string {
	seeds := grouped(uint64(r.Seeds))
	if r.Ended != completed {
		seeds += " of " + grouped(uint64(r.planned))
	}
	lines := []entry{
		{"seeds", fmt.Sprintf("%s, from %d", seeds, r.FirstSeed)},
		{"simulated", fmt.Sprintf("%.1f h in %.1f s", r.Hours, r.Elapsed)},
		{"speed-up", grouped(uint64(r.Speedup)) + "x"},
		{"events", grouped(r.Events)},
		{"messages", grouped(r.Messages)},
		{"checks", grouped(r.Checks)},
		{"trace hash", r.Hash},
		{"violations", grouped(uint64(r.Failed))},
	}
	if r.Mutant != "" {
		lines = slices.Insert(lines, 0, entry{"planted bug", r.Mutant})
	}
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "  %-11s  %s\n", l.name, l.value)
	}
	return out.String()
}

// verdict is the last line.
func (r *simReport) verdict() string {
	found := good("no violation")
	if r.Failed > 0 {
		found = bad(counted(r.Failed, "violation"))
	}
	line := fmt.Sprintf("%s in %s", found, counted(r.Seeds, "world"))
	if r.Ended != completed {
		line += fmt.Sprintf("; %s before the other %s", r.Ended, grouped(uint64(r.planned-r.Seeds)))
	}
	return line
}

// text is a violation and how to see it happen.
func (f failure) text() string {
	return fmt.Sprintf("%s  seed %d, %s, at %s\n%s\n  %s\n\n",
		bad("VIOLATION"), f.Seed, f.Invariant, f.At, indented(f.Text), "replay: "+f.Replay)
}

// survived says that nothing noticed the planted bug.
func (o *simOptions) survived() string {
	return fmt.Sprintf("%s  The planted bug %s was not noticed in %s.\nEither these are too few or the wrong ones, or a check is missing.\n",
		bad("MUTANT SURVIVED"), o.planted, counted(o.seeds, "world"))
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// counts lists what of says how often, for the names in which.
func counts(which, of tally) []entry {
	var entries []entry
	for _, name := range slices.SortedFunc(maps.Keys(which), inOrder) {
		entries = append(entries, entry{name, grouped(of[name])})
	}
	return entries
}

func names(of []string) []entry {
	var entries []entry
	for _, name := range of {
		entries = append(entries, entry{name: name})
	}
	return entries
}

// inOrder puts I2 before I10, and all else after them, by the alphabet.
func inOrder(a, b string) int {
	number := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "I%d ", &n); err != nil {
			return math.MaxInt
		}
		return n
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
}
