package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// The plan of MoveRange is restricted to the range: a move that is partly in it has a proportional part of the
// load.
func TestWithin(t *testing.T) {
	r := func(start, limit leasehold.Key) leasehold.Range { return leasehold.Range{Start: start, Limit: limit} }
	plan := []machine.Planned{
		{Range: r(0, 100), From: "a", To: "b", Load: 7},
		{Range: r(100, 200), From: "a", To: "c", Load: 10, WithState: true},
		{Range: r(300, 0), From: "b", To: "c"},
	}
	want := []machine.Planned{{Range: r(150, 200), From: "a", To: "c", Load: 5, WithState: true}}
	if diff := cmp.Diff(want, within(plan, r(150, 300))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A reply lists a bounded number of moves of a plan, with the totals of all.
func TestPlanIsBounded(t *testing.T) {
	plan := make([]machine.Planned, maxListedMoves+5)
	for i := range plan {
		start := leasehold.Key(i) << 50
		plan[i] = machine.Planned{Range: leasehold.Range{Start: start, Limit: start + 1<<50}, WithState: i%2 == 0}
	}
	got := fromPlan(plan)
	total := float64(len(plan)) / (1 << 14)
	if len(got.GetMoves()) != maxListedMoves || int(got.GetTotal()) != len(plan) || got.GetShare() != total || got.GetShareLost() != 2050.0/(1<<14) {
		t.Errorf("%d are listed of %d, with shares of %v and %v", len(got.GetMoves()), got.GetTotal(), got.GetShare(), got.GetShareLost())
	}
}
