package manager_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// loaded makes an owner report the load of its keys.
func (o *paperOwner) loaded(hot []partition.HotKey, cells ...partition.Cell) {
	o.moving.loads = &partition.Loads{Cells: cells, Hot: hot}
	o.send()
	o.leader.settle()
	o.moving.loads = nil // not reported again
}

// untilAsked lets time pass until the policy runs, and returns the duration.
func (l *paperLeader) untilAsked(p *plan) time.Duration {
	l.t.Helper()
	before, start := len(p.asked), l.now
	for range 60 {
		l.renew(5*time.Second, l.owners...)
		if len(p.asked) > before {
			return l.now.Sub(start)
		}
	}
	l.t.Fatal("no policy run in five minutes")
	return 0
}

// Reported loads cause a policy run within the interval. Without reports there is none.
func TestLoadsAreBalanced(t *testing.T) {
	l, p := newMovingLeader(t, "aabb")
	a, b := l.mover("a"), l.mover("b")
	asked := len(p.asked)
	l.renew(2*time.Minute, a, b)
	if len(p.asked) != asked {
		t.Fatalf("%d policy runs without a reason", len(p.asked)-asked)
	}
	a.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: 900})
	b.loaded([]partition.HotKey{{Key: 3 << 56, Rate: 40}}, partition.Cell{Range: cell(2, 3), Rate: 100})
	if d := l.untilAsked(p); d > 10*time.Second {
		t.Errorf("the policy runs after %v, want 10 s", d)
	}
	want := partition.Loads{
		Cells: []partition.Cell{{Range: cell(0, 2), Rate: 900}, {Range: cell(2, 3), Rate: 100}},
		Hot:   []partition.HotKey{{Key: 3 << 56, Rate: 40}},
	}
	if diff := cmp.Diff(want, p.last().Loads); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	asked = len(p.asked)
	l.renew(2*time.Minute, a, b)
	if len(p.asked) != asked {
		t.Errorf("without new loads there are %d more policy runs", len(p.asked)-asked)
	}
}

// Loads in a coarse unit, such as processor seconds, are balanced from a threshold in that unit on.
func TestCoarseLoads(t *testing.T) {
	for rate, want := range map[float64]int{0.4: 0, 0.5: 1} { // two owners, 0.25 each
		l, p := newMovingLeader(t, "aabb", func(c *manager.Config) { c.MinLoad = 0.25 })
		a := l.mover("a")
		l.mover("b")
		a.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: rate})
		l.untilAsked(p)
		if n := len(p.last().Loads.Cells); n != want {
			t.Errorf("with %v processors in use the policy gets %d cells, want %d", rate, n, want)
		}
	}
}

// A few requests per second are noise: nothing is moved for them.
func TestQuietLoadsAreIgnored(t *testing.T) {
	for rate, want := range map[float64]int{99: 0, 100: 1} { // two owners, 50 each
		l, p := newMovingLeader(t, "aabb")
		a := l.mover("a")
		l.mover("b")
		a.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: rate})
		l.untilAsked(p)
		if n := len(p.last().Loads.Cells); n != want {
			t.Errorf("with %v requests per second the policy gets %d cells, want %d", rate, n, want)
		}
	}
}

// Loads of keys that the reporting owner does not hold are ignored: their holder may report them.
func TestLoadsAreClipped(t *testing.T) {
	l, p := newMovingLeader(t, "aab")
	a, b := l.mover("a"), l.mover("b")
	a.loaded([]partition.HotKey{{Key: 5, Rate: 30}, {Key: 1<<56 + 5, Rate: 31}, {Key: 2<<56 + 5, Rate: 32}, {Key: math.MaxUint64, Rate: 33}},
		partition.Cell{Range: cell(0, 4), Rate: 4000}) // cells 2 and 3 are b's
	l.untilAsked(p)
	want := partition.Loads{
		Cells: []partition.Cell{{Range: cell(0, 2), Rate: 2000}},
		Hot:   []partition.HotKey{{Key: 5, Rate: 30}, {Key: 1<<56 + 5, Rate: 31}},
	}
	if diff := cmp.Diff(want, p.last().Loads, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
	p.give("abb")
	l.replan()
	a.completes(a.departures()[0])
	l.settle()
	a.stopsReporting()
	b.loaded(nil, partition.Cell{Range: cell(2, 3), Rate: 10})
	l.untilAsked(p)
	want = partition.Loads{
		Cells: []partition.Cell{{Range: cell(0, 1), Rate: 1000}, {Range: cell(2, 3), Rate: 10}},
		Hot:   []partition.HotKey{{Key: 5, Rate: 30}},
	}
	if diff := cmp.Diff(want, p.last().Loads, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("loads, when a part has moved (-want +got):\n%s", diff)
	}
}

// Moves for balance are taken out of a budget, which fills with time, up to a bound.
func TestChurnBudget(t *testing.T) {
	const churn = 0.09 // of all keys per minute
	most := 2 * churn * (10 * time.Second).Minutes()
	l, p := newMovingLeader(t, "aabb")
	a, b := l.mover("a"), l.mover("b")
	ask := func() float64 {
		a.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: 900})
		l.untilAsked(p)
		return p.last().Budget
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: the budget is %v, want %v", what, got, want)
		}
	}
	l.renew(5*time.Minute, a, b)
	near("after five minutes", ask(), most)
	near("when nothing was moved", ask(), most)
	p.give("aaaa") // more than the budget
	near("before a decision that moves everything", ask(), most)
	near("ten seconds after that", ask(), most/2)
	near("when it was not spent", ask(), most)
}

// Ranges of an owner that left, and ranges without an owner, cost no budget.
func TestBudgetIsForBalance(t *testing.T) {
	l, p := newMovingLeader(t, "aabb")
	a, b := l.mover("a"), l.mover("b")
	l.renew(5*time.Minute, a, b)
	a.leave()
	p.give("bbbb")
	l.settle()
	b.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: 900})
	l.untilAsked(p)
	if most := 2 * 0.09 * (10 * time.Second).Minutes(); math.Abs(p.last().Budget-most) > 1e-9 {
		t.Errorf("after an owner left the budget is %v, want %v", p.last().Budget, most)
	}
}

// If a policy fails, the leader keeps the last assignment, reports the error, and runs the policy again.
func TestPolicyFails(t *testing.T) {
	l, p := newMovingLeader(t, "aabb")
	a, b := l.mover("a"), l.mover("b")
	since, good := len(l.log), p.want
	broken := errors.New("no assignment found")
	p.want = func(partition.Input) (partition.Assignment, error) { return nil, broken }
	asked := len(p.asked)
	l.replan()
	l.renew(time.Minute, a, b)
	if n := len(p.asked) - asked; n != 5 { // at once, and every 15 s
		t.Errorf("it runs %d times in a minute, want 5", n)
	}
	if len(l.refused) != 5 || !errors.Is(l.refused[0], broken) {
		t.Errorf("reported errors: %v", l.refused)
	}
	l.wantChanges(since)
	p.want = good
	l.renew(20*time.Second, a, b)
	if n := l.noted(manager.NotePolicyRefused); n != 5 {
		t.Errorf("noted %d times", n)
	}
	l.wantHolder(0, "a", "after the failures")
	l.wantHolder(2<<56, "b", "after the failures")
}

// A policy with an invalid result, or a panic, has failed.
func TestInvalidPolicyResult(t *testing.T) {
	for name, want := range map[string]func(partition.Input) (partition.Assignment, error){
		"unknown owners": func(partition.Input) (partition.Assignment, error) {
			return partition.Assignment{{Owner: "nobody"}}, nil
		},
		"no first range": func(partition.Input) (partition.Assignment, error) {
			return partition.Assignment{{Start: 5, Owner: "a"}}, nil
		},
		"a panic": func(partition.Input) (partition.Assignment, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			l, p := newMovingLeader(t, "aabb")
			l.mover("a")
			l.mover("b")
			since := len(l.log)
			p.want = want
			l.replan()
			l.wantChanges(since)
			if len(l.refused) != 1 || leasehold.KindOf(l.refused[0]) == leasehold.Other {
				t.Errorf("reported errors: %v", l.refused)
			}
		})
	}
}

// Timers that are due while a batch is pending wait for its end, and do not make the leader spin.
func TestNothingIsDueDuringACommit(t *testing.T) {
	for name, due := range map[string]func(*plan, *paperOwner){
		"loads": func(_ *plan, a *paperOwner) {
			a.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: 900})
		},
		"a move to be retried": func(p *plan, a *paperOwner) {
			p.give("bbbb.")
			a.parts()
			a.reports(a.departures()[0], protocol.MoveFailed)
			a.send()
			a.read()
			a.stopsReporting()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := newMovingLeader(t, "aabb.")
			a := l.mover("a")
			l.mover("b")
			due(p, a)
			l.holdUp = true
			p.give("bbbbb")
			l.must(manager.OrderRebalance, "", leasehold.Range{})
			if l.pending == nil {
				t.Fatal("no batch is pending")
			}
			for end := l.now.Add(20 * time.Second); l.now < end; {
				before := l.now
				l.now = min(max(l.wake, l.now), end)
				l.did(l.machine.Advance(l.now))
				if l.wake <= l.now {
					t.Fatalf("at %v the next wake-up is %v, after one at %v", l.now, l.wake, before)
				}
			}
		})
	}
}

// If a policy fails after a change of loads, nothing changes, and the error is reported. It runs again after the
// next report.
func TestPolicyFailsAboutLoads(t *testing.T) {
	l, p := newMovingLeader(t, "aabb")
	a := l.mover("a")
	l.mover("b")
	since, broken := len(l.log), errors.New("no assignment found")
	p.want = func(partition.Input) (partition.Assignment, error) { return nil, broken }
	for n := range 2 {
		a.loaded(nil, partition.Cell{Range: cell(0, 2), Rate: 900})
		l.untilAsked(p)
		if len(l.refused) != n+1 || !errors.Is(l.refused[n], broken) {
			t.Fatalf("reported errors: %v", l.refused)
		}
	}
	l.wantChanges(since)
}
