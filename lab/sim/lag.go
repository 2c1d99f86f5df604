package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A lag makes what one manager asks of the store slow, while the store is as fast as ever for the others: its
// disk is slow, or its way to the store.
type lag struct {
	shape lagShape
	most  time.Duration
	reads bool  // reads are slow too, but the manager waits for them: otherwise it is as in StoreCut
	since int64 // true time
}

// lagShape is how a lag goes on.
type lagShape uint8

const (
	noLag lagShape = iota
	constantLag
	growingLag // from nothing to the most, in lagGrowth
	burstyLag  // now and then
	lagShapes
)

const lagGrowth = 20 * time.Second

// drawLag draws a lag: any part of the TTL, or a little more than all of it, which is where a leader has no
// authority and its record does not stand still.
func (n *nemesis) drawLag() lag {
	w := n.world
	most := simTTL * time.Duration(1+w.Random.IntN(48)) / 32
	if w.Chance(3) {
		most = simTTL + w.Below(simTTL/5)
	}
	return lag{shape: constantLag + lagShape(w.Random.IntN(int(lagShapes-constantLag))), most: most, reads: w.Chance(4), since: w.Now}
}

// storeLag slows a manager's requests down for a while: often for so long that another one must take over. Mostly no
// other one is slow then.
func (n *nemesis) storeLag() bool {
	w := n.world
	for _, m := range w.managers {
		if m.lag.shape != noLag && !w.Chance(4) {
			return false
		}
	}
	m := w.managers[w.Random.IntN(len(w.managers))]
	l, d := n.drawLag(), n.span(5*time.Second, 90*time.Second)
	m.lag = l
	n.tell("of %s by up to %v for %v, shape %d, reads %t", m.label, l.most, d, l.shape, l.reads)
	n.after(d, func() {
		if m.lag == l {
			m.lag = lag{}
		}
	})
	return true
}

// of returns how much longer a request takes that a manager sends now.
func (l lag) of(w *world, what any) time.Duration {
	most := l.most
	switch {
	case l.shape == noLag || !l.reads && !writes(what):
		return 0
	case !writes(what):
		most = min(most, lagPatience-2*calmDelay)
	}
	switch l.shape {
	case growingLag:
		return time.Duration(float64(most) * min(1, float64(w.Now-l.since)/float64(lagGrowth)))
	case burstyLag:
		return most * time.Duration(w.Random.IntN(2))
	default:
		return most
	}
}

// writes reports whether a request writes.
func writes(what any) bool {
	switch what.(type) {
	case byrecord.Read, manager.ReadEnd, managerproc.Load, managerproc.LoadCatalog:
		return false
	}
	return true
}

// lagPatience is how long a manager waits for the leader record: as long as the real one does.
const lagPatience = simTTL / 2

// giveUpLate tells a manager that lags, when its patience is at an end, that the outcome is unknown.
func (s *store) giveUpLate(r *storeRequest) {
	patience := storeWait
	switch r.what.(type) {
	case byrecord.Read, byrecord.Swap:
		patience = lagPatience
	}
	s.world.Later(patience, engine.Nowhere, 0, &giveUp{r})
}
