package faults

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const intro = `# What may happen to us, and where it is tried

<!-- written by go run ./internal/faults/record; do not edit -->

Each case is something that happens to real clusters, with what must hold then; I1 to I10 are in [ARCHITECTURE.md](ARCHITECTURE.md).
It is tried

- in the simulator (` + "`leasehold sim`" + `, and ` + "`leasehold flease sim`" + ` where it says flease), by faults that strike at random; a name with a
  colon is a branch of a machine that is counted: what the fault leads to;
- by chaos: real processes on a network that is broken (` + "`leasehold chaos`" + `), by kinds of faults;
- by tests, which are named with their directory; those marked * run with failpoints.

Runs is how often that has happened: faults that struck and branches that were taken, strikes of the nemesis, tests that passed. After every event of the
simulator, and over the whole history of a chaos run, all invariants are checked, not only those of the case. A violation of a run counts against
every case that it had. What is open is said with the case.

`

// Page returns docs/FAULTS.md.
func Page(cases []Case, results *Results) string {
	var b strings.Builder
	b.WriteString(intro)
	last := ""
	for i := range cases {
		c := &cases[i]
		if c.Part != last {
			last = c.Part
			fmt.Fprintf(&b, "## %s\n\n| | what happens | what must hold | where it is tried | runs | violations |\n|---|---|---|---|---|---|\n", c.Part)
		}
		runs, violations := results.OfCase(c)
		fmt.Fprintf(&b, "| %d | %s | %s (%s) | %s | %s | %d |\n", c.Number, c.What, c.Must, c.Tries, where(c), times(runs), violations)
		if i+1 == len(cases) || cases[i+1].Part != c.Part {
			b.WriteString("\n")
		}
	}
	b.WriteString(sources(results))
	return b.String()
}

// where lists the proofs of a case, by kind.
func where(c *Case) string {
	var lines []string
	for _, k := range []struct {
		kind Kind
		name string
	}{{Sim, "simulator"}, {Flease, "flease"}, {Chaos, "chaos"}} {
		var names []string
		for _, p := range c.Proofs {
			if p.Kind == k.kind {
				names = append(names, "`"+p.Name+"`")
			}
		}
		if len(names) > 0 {
			lines = append(lines, k.name+": "+strings.Join(names, ", "))
		}
	}
	if t := testsOf(c); t != "" {
		lines = append(lines, "tests: "+t)
	}
	if c.Open != "" {
		lines = append(lines, "**open:** "+c.Open)
	}
	return strings.Join(lines, "<br>")
}

// testsOf lists the tests of a case, those of a directory together.
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

// times says how often things have run.
func times(runs map[Kind]int) string {
	var parts []string
	for _, k := range []struct {
		kind Kind
		name string
	}{{Sim, "simulator"}, {Flease, "flease"}, {Chaos, "chaos"}, {Test, "tests"}} {
		if n, ok := runs[k.kind]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", k.name, grouped(n)))
		}
	}
	return strings.Join(parts, "<br>")
}

// sources says where the numbers come from.
func sources(r *Results) string {
	var b strings.Builder
	b.WriteString("## Where the numbers come from\n\n| command | date | what | violations |\n|---|---|---|---|\n")
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d |\n", run.Command, run.Date, run.Size, run.Violations)
	}
	return b.String()
}

// grouped writes a number with commas.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
