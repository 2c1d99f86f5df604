package explore

import (
	"context"
	"fmt"
)

// A Report is what was found.
type Report struct {
	Scenario string
	Depth    int
	States   int // that differ
	Steps    int // that were tried
	Leases   int // that were acquired, in states that differ
	Violated *Violation
}

// A Violation is how to get to a state in which two processes hold the lease.
type Violation struct {
	Text string
	Path []string
}

func (r *Report) String() string {
	return fmt.Sprintf("%s, depth %d: %d states, %d steps, %d leases", r.Scenario, r.Depth, r.States, r.Steps, r.Leases)
}

// An explorer is a search from one state, depth first.
type explorer struct {
	ctx      context.Context
	scenario Scenario
	report   Report
	seen     map[uint64]int8 // how many steps were left, by the hash of a state
	path     []string
	scratch  []byte
}

// Explore tries all that can happen in a scenario. It ends at the first violation,
// or when ctx does.
func Explore(ctx context.Context, s Scenario) (*Report, error) {
	x := &explorer{ctx: ctx, scenario: s, report: Report{Scenario: s.Name, Depth: s.Depth}, seen: map[uint64]int8{}}
	begin, err := newState(&x.scenario)
	if err != nil {
		return nil, err
	}
	x.visit(begin, int8(s.Depth))
	x.report.States = len(x.seen)
	return &x.report, ctx.Err()
}

// visit explores what can happen from a state, unless that was done before. It
// reports whether to go on.
func (x *explorer) visit(s *state, left int8) bool {
	key := x.hash(s)
	before, known := x.seen[key]
	if known && before >= left {
		return true
	}
	x.seen[key] = left
	if !known && s.acquired {
		x.report.Leases++
	}
	if text := s.violated(); text != "" {
		x.report.Violated = &Violation{text, append([]string(nil), x.path...)}
		return false
	}
	if left == 0 {
		return true
	}
	if x.report.Steps&0xffff == 0 && x.ctx.Err() != nil {
		return false
	}
	return s.each(func(next *state, what func() string) bool {
		x.report.Steps++
		// What a step is called is written only if someone will read it: a search
		// that finds nothing spends no time on it.
		place := len(x.path)
		x.path = append(x.path, "")
		ok := x.visit(next, left-1)
		if !ok && x.report.Violated != nil {
			x.report.Violated.Path[place] = what()
		}
		x.path = x.path[:place]
		return ok
	})
}
