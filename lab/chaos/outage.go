package chaos

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/nemesis"
)

const (
	// outageEvery: one in this number of storms is an outage, if there are others.
	outageEvery = 3
	// quietTime is the time without a transfer of a key before an outage, and quietPatience the maximum wait
	// for it: a leader that balances moves a few keys every 10 s.
	quietTime     = 3 * time.Second
	quietPatience = 15 * time.Second
)

// isOutage reports whether a storm is an outage.
func (r *run) isOutage(storm uint64) bool {
	in := r.cfg.setting()
	return nemesis.HasOutages(in, r.cfg.Kinds) && (storm%outageEvery == outageEvery-1 || !nemesis.HasStorms(in, r.cfg.Kinds))
}

// outage is a storm of one fault, of managers, store or network, but not of an owner. It begins in a quiet
// cluster, so that only the outage can end leases, and is judged by I11.
func (r *run) outage(ctx context.Context, n *nemesis.Nemesis, random *rand.Rand, storm uint64) error {
	if err := r.quiet(ctx); err != nil {
		return err
	}
	in := r.cfg.setting()
	in.Copied = time.Since(r.cluster.CopiedAt()) > n.CopyAge
	strike, ok := nemesis.PlanOutage(random, in, r.left(), r.cfg.Outage, r.cfg.Kinds, r.struck())
	if !ok {
		return nil
	}
	r.setPhase("breaking")
	term, _ := r.cluster.Term(ctx) // 0 if no manager leads
	outage := r.book.Outage(strike.Kind, oracle.Now())
	if err := n.Storm(ctx, []nemesis.Strike{strike}); err != nil || ctx.Err() != nil {
		return err
	}
	r.count(func(p *Report) { p.Storms++ })
	if err := r.healed(ctx, fmt.Sprintf("after storm %d, %s", storm+1, strike.Kind)); err != nil {
		return err
	}
	now, _ := r.cluster.Term(ctx)
	if r.losesNothing(strike.Kind, term, now) {
		r.book.JudgeOutage(outage)
	}
	return nil
}

// losesNothing reports whether I11 holds for an outage between two terms. A restored store may have lost
// leases. Without a store the table ends with the leader's term (docs/ARCHITECTURE.md, "Without a store").
func (r *run) losesNothing(kind string, before, after leasehold.Term) bool {
	if kind == nemesis.StoreRestore {
		return false
	}
	return r.cfg.Shape.Stored() || before != 0 && before == after
}

// quiet waits until the cluster is quiet, or for quietPatience.
func (r *run) quiet(ctx context.Context) error {
	r.setPhase("waiting for a quiet cluster")
	began := oracle.Now()
	for end := time.Now().Add(quietPatience); time.Now().Before(end); {
		now := oracle.Now()
		if now-began >= oracle.Time(quietTime) && r.book.Quiet(now-oracle.Time(quietTime)) {
			return nil
		}
		if err := r.wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// struck returns the number of injected faults of each kind.
func (r *run) struck() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.report.ByKind)
}

// left returns the remaining time for faults.
func (r *run) left() time.Duration {
	if r.cfg.For == 0 {
		return math.MaxInt64
	}
	return r.cfg.For - time.Since(r.begin)
}

// silenced returns the callers that receive no message from any manager during a fault.
func (r *run) silenced(d *nemesis.Deed) (names []string) {
	switch d.Kind {
	case nemesis.CallerCut:
		return []string{d.Victims}
	case nemesis.ManagersKill, nemesis.ManagersPause, nemesis.ManagersCut:
		for _, c := range r.cluster.Callers {
			names = append(names, c.Name)
		}
	}
	return names
}
