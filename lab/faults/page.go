package faults

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/server/console"
)

const intro = `# Faults

<!-- written by go run ./lab/faults/record; do not edit -->

Each case is a fault with the required result; I1 to I12 are [invariants](ARCHITECTURE.md#invariants). The numbers count tests of it:

- **simulator**: injected faults and machine branches of ` + "`leasehold-lab sim`" + `; for Flease of ` + "`leasehold-lab flease sim`" + `;
- **chaos**: faults injected into real processes by ` + "`leasehold-lab chaos`" + `;
- **tests**: named tests that passed.

The simulator checks all its invariants after every event; chaos checks I1, I2, I4 to I6, after an outage I11, in a soak I8. Chaos runs ten
clients, and seconds where a case is an hour. With ` + "`--drift=beyond`" + ` violations that follow from the drift bound are [excused](RELIABILITY.md#faults). A
violation counts against every case of its run. A dash means: not tested there.

`

// Page returns docs/FAULTS.md.
func Page(cases []Case, results *Results) string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString(summary(cases, results))
	b.WriteString(inParts(cases, "##", "| | fault | required | simulator | chaos | tests | violations |\n|---|---|---|---|---|---|---|\n", func(c *Case) string {
		runs, violations := results.OfCase(c)
		return fmt.Sprintf("| %d | %s | %s (%s) | %s | %s | %s | %d |\n", c.Number, c.What, c.Must, c.Tries,
			results.times(runs, Sim, Flease), results.times(runs, Chaos), results.times(runs, Test), violations)
	}))
	b.WriteString("## Tests of each case\n\nA name with a colon is a counted branch of a machine. Test names lack `Test`; those marked * run with failpoints.\n\n")
	b.WriteString(inParts(cases, "###", "| | simulator | chaos | tests |\n|---|---|---|---|\n", func(c *Case) string {
		simulated := strings.TrimPrefix(named(c, Sim, "")+named(c, Flease, "<br>flease: "), "<br>")
		return fmt.Sprintf("| %d | %s | %s | %s |\n", c.Number, cmp.Or(simulated, "-"), cmp.Or(named(c, Chaos, ""), "-"), cmp.Or(testsOf(c), "-"))
	}))
	b.WriteString(sources(results))
	return b.String()
}

// summary returns the number of cases, of tested cases, and the known limitations.
func summary(cases []Case, results *Results) string {
	var open strings.Builder
	tried, violated := 0, 0
	for i := range cases {
		runs, violations := results.OfCase(&cases[i])
		if slices.ContainsFunc(slices.Collect(maps.Values(runs)), func(n int) bool { return n > 0 }) {
			tried++
		}
		if violations > 0 {
			violated++
		}
		if c := &cases[i]; c.Open != "" {
			fmt.Fprintf(&open, "- %d, %s: %s.\n", c.Number, c.What, c.Open)
		}
	}
	return fmt.Sprintf("**%d cases, %d tested, %d with violations.** Open:\n\n%s\n", len(cases), tried, violated, open.String())
}

// inParts returns a table for each section of the catalog, with a row for each case.
func inParts(cases []Case, level, head string, row func(*Case) string) string {
	var b strings.Builder
	last := ""
	for i := range cases {
		c := &cases[i]
		if c.Part != last {
			last = c.Part
			fmt.Fprintf(&b, "%s %s\n\n%s", level, c.Part, head)
		}
		b.WriteString(row(c))
		if i+1 == len(cases) || cases[i+1].Part != c.Part {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func named(c *Case, kind Kind, before string) string {
	var names []string
	for _, p := range c.Proofs {
		if p.Kind == kind {
			names = append(names, "`"+p.Name+"`")
		}
	}
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(names, ", ")
}

func testsOf(c *Case) string {
	var dirs []string
	names := make(map[string][]string)
	for _, p := range c.Proofs {
		if p.Kind != Test {
			continue
		}
		if !slices.Contains(dirs, p.Dir) {
			dirs = append(dirs, p.Dir)
		}
		name := strings.TrimPrefix(p.Name, "Test")
		if p.Tags != "" {
			name += "*"
		}
		names[p.Dir] = append(names[p.Dir], name)
	}
	var all []string
	for _, d := range dirs {
		all = append(all, fmt.Sprintf("%s (%s)", path.Clean(d), strings.Join(names[d], ", ")))
	}
	return strings.Join(all, "; ")
}

// times formats the number of runs of some kinds of proofs, if the case has any.
func (r *Results) times(runs map[Kind]int, kinds ...Kind) string {
	sum, has, recorded := 0, false, false
	for _, k := range kinds {
		n, ok := runs[k]
		sum, has = sum+n, has || ok
		recorded = recorded || ok && slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Kind == k })
	}
	switch {
	case !has:
		return "-"
	case !recorded:
		return "not recorded"
	}
	return console.Grouped(uint64(sum))
}

func sources(r *Results) string {
	var b strings.Builder
	b.WriteString("## Runs\n\n| command | date | size | violations |\n|---|---|---|---|\n")
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d |\n", run.Command, run.Date, run.Size, run.Violations)
	}
	return b.String()
}
