package manager_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// commitTime is the latency of the simulated store.
const commitTime = 20 * time.Millisecond

// pass lets time pass in steps of a commit, in which players answer their replies. Each player sends a request when
// it is due.
func (p *pool) pass(d time.Duration, due func(*player) bool) {
	p.t.Helper()
	for end := p.now.Add(d); p.now < end; {
		p.now = p.now.Add(commitTime)
		if p.committing {
			p.committing = false
			p.step(manager.Committed{Outcome: storage.Done})
		}
		p.did(p.machine.Advance(p.now))
		for queue := p.queue; len(queue) > 0; queue = queue[1:] {
			p.queue = p.queue[1:]
			if o := queue[0]; o.read() {
				p.send(o)
			}
		}
		for _, h := range p.sorted() {
			if due(h) {
				p.send(h)
			}
		}
	}
}

// sorted returns the players, in the order of their owner names.
func (p *pool) sorted() []*player {
	return slices.SortedFunc(maps.Values(p.players), func(a, b *player) int { return cmp.Compare(a.holder.Owner, b.holder.Owner) })
}

// keys returns the number of keys in a range other than leasehold.All.
func keys(r leasehold.Range) uint64 { return uint64(r.Last()-r.Start) + 1 }

// vacant returns the share of keys without an owner.
func vacant(t *table.Table) (share float64) {
	for r, e := range t.All() {
		if e.Vacant() {
			share += float64(r.Last()-r.Start) / (1 << 64)
		}
	}
	return share
}

// A thousand owners that join within a second all get their ranges soon, and the cost does not depend on the order
// of their requests: each range is granted a few times at most, in few writes.
func TestThousandOwnersJoin(t *testing.T) {
	const owners = 1000
	cfg := poolConfig()
	cfg.Gather = time.Second
	p := newPoolOf(t, cfg, &storage.State{})
	joined := 0
	began := p.now
	for p.now < began.Add(time.Second) {
		for range owners / 50 {
			p.join(poolHolder(joined))
			joined++
		}
		p.pass(commitTime, func(*player) bool { return false })
	}
	if joined != owners {
		t.Fatalf("%d members within a second, want %d", joined, owners)
	}
	bound := p.machine.Sizes()
	if bound.Planned > 10 || p.commits > 3 {
		t.Errorf("while they join there are plans for %d ranges, and %d writes", bound.Planned, p.commits)
	}
	p.pass(9*time.Second, func(*player) bool { return false })
	p.requireSettled()
	for _, o := range p.players {
		if len(o.leases) == 0 {
			t.Fatalf("%s has no lease after 10 s", o.holder.Owner)
		}
	}
	ranges := p.machine.Table().Len()
	t.Logf("%d ranges, %d changes in %d commits, at most %+v", ranges, p.changes, p.commits, bound)
	if p.changes > 3*ranges || p.commits > 500 {
		t.Errorf("a table of %d ranges took %d changes in %d writes", ranges, p.changes, p.commits)
	}
	if s := p.machine.Sizes(); s.Sessions != owners || s.Seats != owners || s.Freed != 0 || s.Moves != 0 {
		t.Errorf("it still has %+v", s)
	}
}

// Half of all owners die at the same instant. Their leases are lost once each, with few writes, and the other
// owners get the ranges soon after the leases have expired.
func TestHalfOfAllDie(t *testing.T) {
	const owners = 200
	p := newPool(t, &storage.State{})
	for i := range owners {
		p.join(poolHolder(i))
	}
	p.settle()
	p.requireSettled()
	lost := make(map[leasehold.Generation]uint64) // number of its keys
	for i := range owners / 2 {
		o := p.players[poolHolder(2*i).Session]
		for _, l := range o.leases {
			lost[l.Generation] += keys(l.Range)
		}
		delete(p.players, o.holder.Session)
	}
	batches := 0
	p.wrote = func(b *storage.Batch) {
		ends := false
		for i := range b.Changes {
			loss, is := b.Changes[i].Loss()
			if !is {
				continue
			}
			ends = true
			if loss.Cause != leasehold.CauseExpired || lost[loss.Generation] < keys(loss.Range) {
				t.Errorf("%v was lost twice, or was not held by a dead owner", loss)
			}
			lost[loss.Generation] -= keys(loss.Range)
		}
		if ends {
			batches++
		}
	}
	living := make(map[leasehold.Session]mono.Instant)
	renews := func(o *player) bool {
		if p.now < living[o.holder.Session].Add(2500*time.Millisecond) {
			return false
		}
		living[o.holder.Session] = p.now
		return true
	}
	p.pass(14*time.Second, renews) // 10 s x 1.20, and two seconds for the grants
	if v := vacant(p.machine.Table()); v > 0 {
		t.Errorf("%.1f %% of the keys have no owner", 100*v)
	}
	p.requireSettled()
	for g, left := range lost {
		if left > 0 {
			t.Errorf("the end of generation %d was not broadcast", g)
		}
	}
	if batches == 0 || batches > 10 {
		t.Errorf("%d leases ended in %d writes, want a few", len(lost), batches)
	}
}
