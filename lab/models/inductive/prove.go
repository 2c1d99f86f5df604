package inductive

import (
	"context"
	_ "embed" // the model
	"fmt"
	"os/exec"
	"strings"
)

//go:embed lease.smt
var lease string

// An obligation is a formula that must hold. It holds if z3 prints unsat: there is no counterexample.
type obligation struct{ name, result string }

// initiation returns the obligations of the first state.
func (m *model) initiation(ctx context.Context) ([]obligation, error) {
	q := m.query(mutant{}, 0)
	q.first()
	q.claim(m.conjuncts)
	return q.prove(ctx)
}

// implication returns the obligations of the properties.
func (m *model) implication(ctx context.Context) ([]obligation, error) {
	q := m.query(mutant{}, 0)
	q.invariant()
	q.claim(m.properties)
	return q.prove(ctx)
}

// consecution returns the obligations of an action: what must hold whenever it happens, and the invariant after it.
func (m *model) consecution(ctx context.Context, a action) ([]obligation, error) {
	q := m.query(mutant{}, 0)
	q.invariant()
	q.step(a)
	q.claim(m.conjuncts)
	return q.prove(ctx)
}

func (q *query) first() {
	for _, e := range q.initial {
		q.assert(e)
	}
}

// prove asks z3 about each claim.
func (q *query) prove(ctx context.Context) ([]obligation, error) {
	for _, c := range q.claims {
		q.print("(push)\n(assert (not %v))\n(check-sat)\n(pop)", c.expr)
	}
	out, err := q.run(ctx)
	results := strings.Fields(out)
	if err != nil || len(results) != len(q.claims) {
		return nil, fmt.Errorf("%d results, want %d: %v", len(results), len(q.claims), err)
	}
	obligations := make([]obligation, len(results))
	for i, c := range q.claims {
		obligations[i] = obligation{c.name, results[i]}
	}
	return obligations, nil
}

// Bounds of sessions, terms, generations, requests and messages in counterexamples and walks.
const (
	small = 2
	large = 5
)

// counterexample returns the conjuncts that a step of a mutant violates, from a small state that satisfies all; none if
// there is no such step.
func (m *model) counterexample(ctx context.Context, a action, mut mutant) ([]string, error) {
	q := m.query(mut, small)
	q.invariant()
	q.step(a)
	var holds []string
	for i, c := range m.conjuncts {
		holds = append(holds, fmt.Sprintf("holds.%d", i))
		q.print("(define-fun %s () Bool %v)", holds[i], q.formula(c.expr, nil))
	}
	all := strings.Join(holds, " ")
	q.print("(assert (not (and %s)))\n(check-sat)\n(get-value (%s))", all, all)
	out, err := q.run(ctx)
	if !strings.HasPrefix(out, "sat") {
		return nil, err
	}
	var violated []string
	for i, c := range m.conjuncts {
		if strings.Contains(out, "("+holds[i]+" false)") {
			violated = append(violated, a.name+": "+c.name)
		}
	}
	return violated, nil
}

// possible reports whether z3 finds the steps of a walk.
func (m *model) possible(ctx context.Context, w walk) (bool, error) {
	q := m.query(mutant{}, large)
	q.first()
	for _, a := range w.actions {
		q.step(a)
	}
	q.assert(w.goal)
	q.print("(check-sat)")
	out, err := q.run(ctx)
	return strings.HasPrefix(out, "sat"), err
}

// run runs z3, with a limit of work and not of time: the result is the same on a loaded machine. Only the first line is
// judged: the exit status is not 0 if there are no values to show.
func (q *query) run(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "z3", "-in", "rlimit=100000000")
	cmd.Stdin = strings.NewReader(q.String())
	out, err := cmd.Output()
	switch result, _, _ := strings.Cut(string(out), "\n"); result {
	case "sat", "unsat", "unknown":
		return string(out), nil
	}
	return "", fmt.Errorf("z3: %v: %.600s", err, out)
}
