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

const intro = `# Faults, and where they are tested

<!-- written by go run ./lab/faults/record; do not edit -->

Each case is a fault of a real cluster, with the property that must hold; I1 to I11 are in [ARCHITECTURE.md](ARCHITECTURE.md).
The numbers count how often it occurred, in:

- **simulator**: injected faults of ` + "`leasehold-lab sim`" + `, and branches of machines that followed; for Flease of
  ` + "`leasehold-lab flease sim`" + `;
- **chaos**: injected faults of ` + "`leasehold-lab chaos`" + `, with real processes on a faulty network;
- **tests**: passed tests of this case by name.

The simulators check all their invariants after every event, not only those of the case. The history of a
chaos run is checked for I1, I2, I4, I5 and I6, after an outage for I11, and in a soak for I8. So the counts of chaos do not cover I3, I7, I9 and I10; I9 is covered by tests that
run chaos with a PostgreSQL. Chaos is limited to one computer: ten clients, and seconds where a case has an
hour. With ` + "`--drift=beyond`" + ` violations that follow from the drift bound are [excused](RELIABILITY.md#what-is-done), and not counted. A violation of a run counts for every case that occurred in it. A dash: the case is not tested there. [The tests of each
case](#where-each-case-is-tested) are listed by name below, and [the sources of the numbers](#sources-of-the-numbers) at the end.

`

// Page returns docs/FAULTS.md.
func Page(cases []Case, results *Results) string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString(summary(cases, results))
	b.WriteString(inParts(cases, "##", "| | fault | property | simulator | chaos | tests | violations |\n|---|---|---|---|---|---|---|\n", func(c *Case) string {
		runs, violations := results.OfCase(c)
		return fmt.Sprintf("| %d | %s | %s (%s) | %s | %s | %s | %d |\n", c.Number, c.What, c.Must, c.Tries,
			results.times(runs, Sim, Flease), results.times(runs, Chaos), results.times(runs, Test), violations)
	}))
	b.WriteString("## Where each case is tested\n\nIn the simulator a name with a colon is a branch of a machine. Tests are named with their " +
		"directory, and without their\n`Test`; those marked * run with failpoints.\n\n")
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
	return fmt.Sprintf("**%d cases, %d of them tested, %d with violations.** Known limitations:\n\n%s\n", len(cases), tried, violated, open.String())
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
	b.WriteString("## Sources of the numbers\n\n| command | date | size | violations |\n|---|---|---|---|\n")
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d |\n", run.Command, run.Date, run.Size, run.Violations)
	}
	return b.String()
}
