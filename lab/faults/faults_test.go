package faults_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/nemesis"
	"github.com/leasehold-dev/leasehold/lab/faults"
	"github.com/leasehold-dev/leasehold/lab/fleasesim"
	"github.com/leasehold-dev/leasehold/lab/sim"
)

const root = "../.."

// Every case exists once, and has a proof.
func TestCasesAreComplete(t *testing.T) {
	cases := faults.Cases()
	if len(cases) != 60 {
		t.Errorf("there are %d cases, want 60", len(cases))
	}
	for i, c := range cases {
		if c.Number != i+1 {
			t.Errorf("case %d comes after %d others", c.Number, i)
		}
		if c.What == "" || c.Must == "" || c.Tries == "" {
			t.Errorf("case %d has no fault, no property, or no invariants", c.Number)
		}
		if len(c.Proofs) == 0 {
			t.Errorf("case %d, %s: no proof", c.Number, c.What)
		}
		for i, p := range c.Proofs {
			if slices.Contains(c.Proofs[:i], p) {
				t.Errorf("case %d has %v twice", c.Number, p)
			}
		}
	}
}

// Every proof exists.
func TestProofsExist(t *testing.T) {
	there := map[faults.Kind][]string{
		faults.Sim: simNames(t), faults.Flease: fleasesim.Kinds().Names(), faults.Chaos: chaosNames(),
	}
	found := make(map[string][]string)
	for _, c := range faults.Cases() {
		for _, p := range c.Proofs {
			if p.Kind != faults.Test {
				if !slices.Contains(there[p.Kind], p.Name) {
					t.Errorf("case %d: %v does not exist", c.Number, p)
				}
				continue
			}
			if found[p.Dir] == nil {
				found[p.Dir] = testsIn(t, p.Dir)
			}
			top, _, _ := strings.Cut(p.Name, "/")
			if !slices.Contains(found[p.Dir], top) {
				t.Errorf("case %d: test %s does not exist in %s", c.Number, top, p.Dir)
			}
		}
	}
}

// simNames returns the faults and branches of the simulator, with and without a store.
func simNames(t *testing.T) []string {
	names := sim.Kinds().Names()
	for _, diskless := range []bool{false, true} {
		cfg := sim.Config{Duration: time.Second, Diskless: diskless}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		names = slices.AppendSeq(names, maps.Keys(cfg.Run(1, nil).Branches))
	}
	return names
}

// chaosNames returns the kinds of faults of all kinds of clusters.
func chaosNames() (names []string) {
	for _, shape := range cluster.Shapes() {
		for _, beyond := range []bool{false, true} {
			names = append(names, nemesis.Kinds(nemesis.Setting{Shape: shape, Other: true, Drift: true, Beyond: beyond, Points: true})...)
		}
	}
	return names
}

// testsIn returns the names of the tests in a directory, with any build tags.
func testsIn(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// Every case has been run, and each of its tests has passed.
func TestProofsHaveRun(t *testing.T) {
	results := results(t)
	for _, c := range faults.Cases() {
		runs, violations := results.OfCase(&c)
		sum := 0
		for _, n := range runs {
			sum += n
		}
		if sum == 0 || violations > 0 {
			t.Errorf("case %d, %s: %d runs, %d violations", c.Number, c.What, sum, violations)
		}
		for _, p := range c.Proofs {
			if n, _ := results.Of(p); p.Kind == faults.Test && n == 0 {
				t.Errorf("case %d: no run of %v is recorded: go run ./lab/faults/record -missing", c.Number, p)
			}
		}
	}
}

// The page is generated from the catalog and the results.
func TestPageIsCurrent(t *testing.T) {
	is, err := os.ReadFile(filepath.Join(root, "docs", "FAULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != faults.Page(faults.Cases(), results(t)) {
		t.Error("docs/FAULTS.md is outdated: go run ./lab/faults/record -page")
	}
}

func results(t *testing.T) *faults.Results {
	t.Helper()
	r, err := faults.ReadResults("results.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A violation counts once for all faults in its run.
func TestOfCase(t *testing.T) {
	r := &faults.Results{Runs: []faults.Run{
		{Kind: faults.Sim, Violations: 2, Counts: map[string]int{"loss": 5, "delay": 7}},
		{Kind: faults.Sim, Violations: 1, Counts: map[string]int{"delay": 1}},
		{Kind: faults.Chaos, Violations: 4, Counts: map[string]int{"loss": 3}},
		{Kind: faults.Test, Violations: 1, Counts: map[string]int{"a.TestA": 2, "a.TestB": 1}, Failures: map[string]int{"a.TestB": 1}},
	}}
	c := faults.Case{Proofs: []faults.Proof{
		{Kind: faults.Sim, Name: "loss"},
		{Kind: faults.Sim, Name: "delay"},
		{Kind: faults.Test, Dir: "a", Name: "TestA"},
		{Kind: faults.Test, Dir: "a", Name: "TestB"},
	}}
	runs, violations := r.OfCase(&c)
	if want := (map[faults.Kind]int{faults.Sim: 13, faults.Test: 3}); !maps.Equal(runs, want) || violations != 4 {
		t.Errorf("%v and %d violations, want %v and 4 violations: 3 of the simulator, and 1 of a test", runs, violations, want)
	}
}

// The page distinguishes faults that are not run, not recorded, and not occurred.
func TestPageDistinguishesUnrecordedCases(t *testing.T) {
	page := faults.Page([]faults.Case{
		{
			Number: 1, Part: "Fires", What: "smoke", Must: "all get out", Tries: "I1", Open: "the cat",
			Proofs: []faults.Proof{{Kind: faults.Chaos, Name: "loss"}, {Kind: faults.Sim, Name: "delay"}, {Kind: faults.Flease, Name: "rate"}},
		},
		{Number: 2, Part: "Fires", What: "flames", Must: "all get out", Tries: "I2", Proofs: []faults.Proof{{Kind: faults.Sim, Name: "calm"}}},
	}, &faults.Results{Runs: []faults.Run{{Kind: faults.Sim, Counts: map[string]int{"delay": 1234}}}})
	for _, want := range []string{
		"**2 cases, 1 tested, 0 with violations.** Open:\n\n- 1, smoke: the cat.\n",
		"| 1 | smoke | all get out (I1) | 1,234 | not recorded | - | 0 |\n| 2 | flames | all get out (I2) | 0 | - | - | 0 |\n\n",
		"### Fires\n\n| | simulator | chaos | tests |\n|---|---|---|---|\n| 1 | `delay`<br>flease: `rate` | `loss` | - |\n| 2 | `calm` | - | - |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}
