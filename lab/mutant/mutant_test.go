package mutant

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/sim"
)

var (
	everyOne  = flag.Bool("all", false, "test all mutants, instead of one of three")
	firstSeed = flag.Uint64("first", 1, "first seed: a mutant must be found in any range of seeds")
)

// thirds returns one of three mutants: building a program with each, and searching, takes a third of the time
// of all tests of this module. Those of Flease, and those that the explorer finds, are few.
func thirds(all []Mutant) (some []Mutant) {
	for i, m := range all {
		if i%3 == 0 || *everyOne {
			some = append(some, m)
		}
	}
	return some
}

func TestMutantsAreWellFormed(t *testing.T) {
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(All()); n < 30 {
		t.Errorf("%d mutants, want at least 30", n)
	}
	if n := len(Fleases()); n < 18 {
		t.Errorf("%d mutants of Flease, want at least 18", n)
	}
	if n := len(Shells()); n < 20 {
		t.Errorf("%d mutants of shells, want at least 20", n)
	}
	for _, m := range Shells() {
		if m.Package == "" || m.Test == "" {
			t.Errorf("%s has no test that detects it", m.Name)
		}
	}
	for _, all := range [][]Mutant{All(), Fleases(), Shells(), Demos()} {
		for i, m := range all {
			if i > 0 && all[i-1].Name >= m.Name {
				t.Errorf("%s comes after %s: names must be sorted and unique", m.Name, all[i-1].Name)
			}
			if m.Name == "" || m.Why() == "" || m.Seeds < 1 {
				t.Errorf("%q is incomplete", m.Name)
			}
			if _, _, err := m.plant(root); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
	if entries, err := os.ReadDir(filepath.Join(root, patches)); err != nil || len(entries) != len(All())+len(Fleases())+len(Shells())+len(demos) {
		t.Errorf("%d patches, but %d mutants of clusters, %d of Flease, %d that tests detect and %d that the demo detects: %v", len(entries), len(All()), len(Fleases()), len(Shells()), len(demos), err)
	}
	for _, m := range All() {
		if found, ok := Find(All(), m.Name); !ok || found != m {
			t.Errorf("%s is not found", m.Name)
		}
	}
	if _, ok := Find(All(), "no such mutant"); ok {
		t.Error("found a mutant that does not exist")
	}
}

func TestBuildErrors(t *testing.T) {
	out := filepath.Join(t.TempDir(), "leasehold")
	patched := func(lines string) Mutant {
		return Mutant{Name: "some-bug", Patch: "It is wrong.\n\n--- a/internal/core/mono/mono.go\n+++ b/internal/core/mono/mono.go\n@@ -1 +1 @@\n" + lines}
	}
	if err := patched("-this text is not there\n+nor this\n").Build(t.Context(), "./cmd/leasehold", out); err == nil || !strings.Contains(err.Error(), "does not have these lines") {
		t.Errorf("a mutant with outdated lines: %v", err)
	}
	if err := patched("-package mono\n+package ???\n").Build(t.Context(), "./cmd/leasehold", out); err == nil || !strings.Contains(err.Error(), "mono.go") {
		t.Errorf("a mutant that does not compile: %v", err)
	}
	if err := (Mutant{Name: "empty", Patch: "It is wrong.\n"}).Build(t.Context(), "./cmd/leasehold", out); err == nil || !strings.Contains(err.Error(), "no hunk") {
		t.Errorf("a patch without a hunk: %v", err)
	}
	t.Chdir(t.TempDir())
	if err := All()[0].Build(t.Context(), "./cmd/leasehold", out); leasehold.KindOf(err) != leasehold.ErrNotFound || !strings.Contains(err.Error(), "inside a checkout") {
		t.Errorf("outside of a checkout: %v", err)
	}
}

// TestEveryMutantIsCaught proves that the simulator's checks can fail.
func TestEveryMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes, because it builds a program for each mutant: runs without -short")
	}
	for _, m := range thirds(All()) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if len(search(t, m, "sim")) == 0 {
				t.Errorf("%d worlds without a violation: %s", m.Seeds, m.Why())
			}
		})
	}
}

// TestEveryFleaseMutantIsCaught is the same for Flease's simulator.
func TestEveryFleaseMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes, because it builds a program for each mutant: runs without -short")
	}
	for _, m := range Fleases() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if len(search(t, m, "flease")) == 0 {
				t.Errorf("%d worlds without a violation: %s", m.Seeds, m.Why())
			}
		})
	}
}

// TestEveryShellMutantIsCaught is the same for code that no simulator runs. Other runs show that these tests
// pass without a bug.
func TestEveryShellMutantIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes, because it builds tests for each mutant: runs without -short")
	}
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range thirds(Shells()) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "tests")
			if err := m.buildTest(t.Context(), program); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+strings.ReplaceAll(m.Test, "/", "$/^")+"$", "-test.failfast", "-test.timeout=1m")
			cmd.Dir = filepath.Join(root, m.Package)
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil && strings.Contains(string(out), "no tests to run"):
				t.Errorf("%s has no test %s", m.Package, m.Test)
			case err == nil:
				t.Errorf("%s of %s did not fail: %s", m.Test, m.Package, m.Why())
			case !strings.Contains(string(out), "--- FAIL: ") && !strings.Contains(string(out), "panic: "):
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The explorer finds some bugs deterministically. These need one fault.
func TestExplorerFindsMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute, because it builds a program for each mutant: runs without -short")
	}
	for _, name := range []string{
		"drift-ignored", "grant-before-commit", "takeover-at-first-sight", "takeover-ignores-drift",
		"takeover-without-waiting", "unknown-commit-taken-for-done", "unknown-swap-taken-for-won",
		"claims-renewed-unchecked", "refused-claim-resumed", "resumed-lease-not-held", "death-answered-before-the-commit",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ok := Find(All(), name)
			if !ok {
				t.Fatal("no such mutant")
			}
			if len(search(t, m, "sim", "--explore=75")) == 0 {
				t.Errorf("the explorer found no violation: %s", m.Why())
			}
		})
	}
}

// The same for Flease's explorer.
func TestFleaseExplorerFindsMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes, because it builds a program for each mutant: runs without -short")
	}
	for _, name := range []string{"flease-one-accept-commits"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ok := Find(Fleases(), name)
			if !ok {
				t.Fatal("no such mutant")
			}
			if len(search(t, m, "flease", "--explore=12", "--detours=2")) == 0 {
				t.Errorf("the explorer found no violation: %s", m.Why())
			}
		})
	}
}

// With equal clock rates, bugs in the measurement of time have no effect: they are found because clock rates
// differ, or by a conjunct of the proven invariant, which is about all rates.
func TestEqualClocksHideMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes, because it builds a program for each mutant: runs without -short")
	}
	for _, name := range []string{"drift-ignored", "takeover-ignores-drift"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ok := Find(All(), name)
			if !ok {
				t.Fatal("no such mutant")
			}
			for _, invariant := range search(t, m, "sim", "--equal-clocks") {
				if !slices.Contains(sim.Proven, invariant) {
					t.Errorf("%s is violated with equal clocks: the bug has an effect without drift", invariant)
				}
			}
		})
	}
}

func build(t *testing.T, m Mutant) string {
	program := filepath.Join(t.TempDir(), "search")
	if err := m.Build(t.Context(), "./lab/mutant/search", program); err != nil {
		t.Fatal(err)
	}
	return program
}

// search runs a program with a planted bug, and returns the invariants that it found violated: one or none.
func search(t *testing.T, m Mutant, protocol string, more ...string) (violated []string) {
	args := append([]string{protocol, fmt.Sprintf("--seeds=%d", m.Seeds), fmt.Sprintf("--first=%d", *firstSeed)}, strings.Fields(m.World)...)
	out, err := exec.CommandContext(t.Context(), build(t, m), append(args, more...)...).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var failures []struct {
		Seed      any
		Invariant string
	}
	if err := json.Unmarshal(out, &failures); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range failures {
		t.Logf("seed %v: %v", f.Seed, f.Invariant)
		violated = append(violated, f.Invariant)
	}
	return violated
}

// TestPlace: a change is found although the lines around it have changed, unless it matches several places.
func TestPlace(t *testing.T) {
	const hunk = "1,5 +1,5 @@\n \t// as it was\n \tif a {\n-\t\treturn 1\n+\t\treturn 2\n \t}\n"
	for _, test := range []struct {
		name, text string
		found      bool
	}{
		{"as it was", "\t// as it was\n\tif a {\n\t\treturn 1\n\t}\n", true},
		{"another comment", "\t// another\n\tif a {\n\t\treturn 1\n\t}\n", true},
		{"other lines around it", "\tfor b {\n\t\treturn 1\n\t\tc()\n\t}\n", true},
		{"two places, distinguished by the line above", "\tif b {\n\t\treturn 1\n\t}\n\tif a {\n\t\treturn 1\n\t}\n", true},
		{"two places", "\tfor b {\n\t\treturn 1\n\t}\n\tfor c {\n\t\treturn 1\n\t}\n", false},
		{"missing", "\tif a {\n\t}\n", false},
	} {
		was, is, found := place(test.text, hunk)
		if found != test.found || found && !strings.Contains(is, "return 2") {
			t.Errorf("%s: found %t: %q becomes %q", test.name, found, was, is)
		}
	}
}
