package manager_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// The result does not depend on the number of ranges, so the ratio is the same with 64 virtual nodes and with few,
// which take seconds and not minutes.
var churnNodes = flag.Int("churn.nodes", 4, "virtual nodes of each owner in the churn test")

const churnOwners = 100

// A churn is a pattern of leaving and joining owners.
type churn struct {
	name   string
	rounds int                                // in each, one owner leaves and one joins
	leaves func(r *rand.Rand, owners int) int // owners are in the order in which they joined
	joins  func(left *table.Holder, next *table.Holder) *table.Holder
}

func newName(_, next *table.Holder) *table.Holder { return next }

// sameName is a restart: the owner that left, in a new session.
func sameName(left, next *table.Holder) *table.Holder {
	next.Owner = left.Owner
	return next
}

var churns = []churn{
	{"a random owner leaves and a new one joins", 10_000, func(r *rand.Rand, n int) int { return r.IntN(n) }, newName},
	{"the oldest leaves and a new one joins", 2_500, func(*rand.Rand, int) int { return 0 }, newName},
	{"the newest leaves and a new one joins", 10_000, func(_ *rand.Rand, n int) int { return n - 1 }, newName},
	{"a random owner restarts", 2_500, func(r *rand.Rand, n int) int { return r.IntN(n) }, sameName},
	{"the newest restarts", 2_500, func(_ *rand.Rand, n int) int { return n - 1 }, sameName},
}

// Adjacent ranges of one owner stay separate leases if they were granted at different times. Still, their number
// stays within twice the policy's, however many owners come and go.
func TestChurnKeepsTableSmall(t *testing.T) {
	for _, c := range churns {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c *churn) run(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	p := newPoolWith(t, partition.Consistent{VirtualNodes: *churnNodes}, &storage.State{})
	var owners []*player
	next := 0
	holder := func() *table.Holder { next++; return poolHolder(next) }
	p.hold = true // leases released together are one batch
	for range churnOwners {
		owners = append(owners, p.join(holder()))
	}
	p.settle()
	var most float64
	for range c.rounds {
		i := c.leaves(random, len(owners))
		left := owners[i]
		owners = slices.Delete(owners, i, i+1)
		p.leave(left)
		p.settle()
		owners = append(owners, p.join(c.joins(left.holder, holder())))
		p.settle()
		sizes := p.machine.Sizes()
		ratio := float64(sizes.Ranges) / float64(sizes.Planned)
		if most = max(most, ratio); ratio > 2 {
			t.Fatalf("after %d changes there are %d ranges, more than twice the %d that the policy needs",
				p.machine.Table().LSN(), sizes.Ranges, sizes.Planned)
		}
	}
	p.requireSettled()
	requireRising(t, p.machine.Table())
	t.Logf("at most %.2f times the ranges that the policy needs, in %d changes", most, p.machine.Table().LSN())
}

// requireRising fails if a generation occurs twice, other than on parts of one lease.
func requireRising(t *testing.T, tab *table.Table) {
	t.Helper()
	holders := make(map[leasehold.Generation]*table.Holder)
	for r, e := range tab.All() {
		if h := holders[e.Generation]; h != nil && h != e.Holder {
			t.Errorf("%v: generation %d belongs to %v and %v", r, e.Generation, h, e.Holder)
		}
		if e.Generation > tab.Newest() {
			t.Errorf("%v: generation %d is newer than the newest, %d", r, e.Generation, tab.Newest())
		}
		holders[e.Generation] = e.Holder
	}
}
