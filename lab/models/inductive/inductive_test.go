package inductive

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold/lab/sim"
)

func load(t *testing.T) *model {
	t.Helper()
	if _, err := exec.LookPath("z3"); err != nil {
		t.Skip("SKIPPED, NOT TESTED: z3 is not installed; make services installs it where it can")
	}
	m, err := read(lease)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestInvariantIsInductive(t *testing.T) {
	m := load(t)
	prove := func(name string, prove func() ([]obligation, error)) {
		t.Run(name, func(t *testing.T) {
			all, err := prove()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range all {
				if o.result != "unsat" {
					t.Errorf("%s: z3 says %s, want unsat", o.name, o.result)
				}
			}
			t.Logf("%d obligations", len(all))
		})
	}
	prove("initiation", func() ([]obligation, error) { return m.initiation(t.Context()) })
	prove("implication", func() ([]obligation, error) { return m.implication(t.Context()) })
	for _, a := range m.actions {
		prove(a.name, func() ([]obligation, error) { return m.consecution(t.Context(), a) })
	}
}

// TestRulesAreNeeded plants bugs. For each there is a small state that satisfies the invariant, and a step to one that
// does not.
func TestRulesAreNeeded(t *testing.T) {
	m := load(t)
	for i, mut := range m.mutants {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(mut.name, func(t *testing.T) {
			var found []string
			for _, a := range m.mutated(mut.rule) {
				violated, err := m.counterexample(t.Context(), a, mut)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, violated...)
			}
			if t.Log(found); len(found) == 0 {
				t.Errorf("no counterexample with another rule %s", mut.rule)
			}
		})
	}
}

// TestWalks: the conditions of the actions are not so strict that nothing happens.
func TestWalks(t *testing.T) {
	m := load(t)
	for _, w := range m.walks {
		t.Run(w.name, func(t *testing.T) {
			if possible, err := m.possible(t.Context(), w); err != nil || !possible {
				t.Errorf("possible %v, %v", possible, err)
			}
		})
	}
}

// TestSimulatorChecksConjuncts: what the simulator checks under the name of a conjunct is in the model.
func TestSimulatorChecksConjuncts(t *testing.T) {
	m, err := read(lease)
	if err != nil {
		t.Fatal(err)
	}
	claims := slices.Clone(m.conjuncts)
	for _, before := range m.before {
		claims = append(claims, before...)
	}
	for _, name := range sim.Proven {
		if !slices.ContainsFunc(claims, func(c named) bool { return c.name == name }) {
			t.Errorf("the simulator checks %s, which is not in the model", name)
		}
	}
}
