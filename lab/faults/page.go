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

const intro = `# What may happen to us, and where it is tried

<!-- written by go run ./lab/faults/record; do not edit -->

Each case is something that happens to real clusters, with what must hold then; I1 to I11 are in [ARCHITECTURE.md](ARCHITECTURE.md).
The numbers say how often it was tried, and by what:

- **simulator**: faults of ` + "`leasehold-lab sim`" + ` that struck, and branches of machines that they led to; in Flease's cases of
  ` + "`leasehold-lab flease sim`" + `;
- **chaos**: faults of ` + "`leasehold-lab chaos`" + ` that struck real processes on a network that is broken;
- **tests**: tests of this case by name that passed.

After every event of a simulator all invariants are checked that it can see, not only those of the case; over the whole history of a
chaos run I1, I2, I4, I5 and I6, after an outage I11, and in a soak I8. So what chaos counts says nothing about I3, I7, I9 and I10; I9 is judged by tests that
run chaos with a PostgreSQL. Chaos tries things as small as one computer has them: ten clients, and seconds where a case says an
hour. With ` + "`--drift=beyond`" + ` what rests on the drift bound is [excused](RELIABILITY.md#faults), and not counted as violated. A violation of a run counts against every case that it had. A dash: it is not tried there. [Where each case is
tried](#where-each-case-is-tried), by name, is below, and [where the numbers come from](#where-the-numbers-come-from) at the end.

`

// Page returns docs/FAULTS.md.
func Page(cases []Case, results *Results) string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString(summary(cases, results))
	b.WriteString(inParts(cases, "##", "| | what happens | what must hold | simulator | chaos | tests | violations |\n|---|---|---|---|---|---|---|\n", func(c *Case) string {
		runs, violations := results.OfCase(c)
		return fmt.Sprintf("| %d | %s | %s (%s) | %s | %s | %s | %d |\n", c.Number, c.What, c.Must, c.Tries,
			results.times(runs, Sim, Flease), results.times(runs, Chaos), results.times(runs, Test), violations)
	}))
	b.WriteString("## Where each case is tried\n\nIn the simulator a name with a colon is a branch of a machine, which is counted. Tests are named with their " +
		"directory, and without their\n`Test`; those marked * run with failpoints.\n\n")
	b.WriteString(inParts(cases, "###", "| | simulator | chaos | tests |\n|---|---|---|---|\n", func(c *Case) string {
		simulated := strings.TrimPrefix(named(c, Sim, "")+named(c, Flease, "<br>flease: "), "<br>")
		return fmt.Sprintf("| %d | %s | %s | %s |\n", c.Number, cmp.Or(simulated, "-"), cmp.Or(named(c, Chaos, ""), "-"), cmp.Or(testsOf(c), "-"))
	}))
	b.WriteString(sources(results))
	return b.String()
}

// summary says how many cases there are, of which something was tried, and what is open.
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
	return fmt.Sprintf("**%d cases, %d of them tried, %d with violations.** What is open:\n\n%s\n", len(cases), tried, violated, open.String())
}

// inParts is a table for each part of the catalogue, under its name, with a row for each case.
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

// times says how often things of some kinds have run, if the case has any.
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
	b.WriteString("## Where the numbers come from\n\n| command | date | what | violations |\n|---|---|---|---|\n")
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d |\n", run.Command, run.Date, run.Size, run.Violations)
	}
	return b.String()
}
