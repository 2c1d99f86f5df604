package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A backup is a copy of the store's content.
type backup struct {
	record  storage.Record
	catalog *storage.Catalog
	logs    map[leasehold.Namespace]*stored
}

func (s *store) backUp() *backup {
	return &backup{record: s.record, catalog: s.readCatalog(), logs: cloneLogs(s.logs)}
}

// restore replaces the store's content by a backup. Requests in flight are of the previous era.
func (s *store) restore(b *backup) {
	s.era++
	s.record, s.history, s.waiting = b.record, nil, nil
	catalog := *b.catalog
	s.catalog = &catalog
	s.logs = cloneLogs(b.logs)
}

func cloneLogs(logs map[leasehold.Namespace]*stored) map[leasehold.Namespace]*stored {
	clone := make(map[leasehold.Namespace]*stored)
	for ns, l := range logs {
		clone[ns] = &stored{l.table, slices.Clone(l.changes), l.unfinished}
	}
	return clone
}

func (s *store) identity() storage.Identity {
	return storage.Identity{Cluster: strconv.Itoa(1 + s.moves), Directory: strconv.Itoa(1 + s.copies)}
}

// restoreStore makes a backup of the store, or restores the last one. Usually the managers are restarted too.
// If they continue to run, the versions of the store continue too, so that no version has two contents. A
// backup is older than the difference between wall clocks, because they determine the numbers that follow. It
// can be seconds old if the identity of the store changes with the restore: with a new cluster, or with
// copied data directories.
func (n *nemesis) restoreStore() bool {
	s := n.store
	if s.record.Version == 0 {
		return false // nothing to restore
	}
	if s.saved == nil || n.Chance(4) {
		s.saved = s.backUp()
		n.detailf("later, from this backup")
		return true
	}
	n.aged += time.Duration(len(n.managers)) * n.clocksApart()
	kind := n.Random.IntN(3)
	switch kind {
	case 0:
		s.moves++
	case 1:
		s.copies++
	default:
		n.aged += 10 * time.Minute
	}
	if kind == 2 || n.Chance(4) {
		n.aged += n.Below(time.Hour)
	}
	version, catalog := s.record.Version, s.catalog.Version
	s.restore(s.saved)
	n.oracle.restored(s.saved.record.Store.Cluster != s.identity().Cluster)
	if kind != 1 && n.Chance(3) {
		n.detailf("while managers run")
		s.record.Version, s.catalog.Version = version+1, catalog+1
		return true
	}
	for _, m := range n.managers {
		if m.alive {
			m.kill()
			n.hangUp(m)
			n.bootLater(m.host, m.boot)
		}
	}
	return true
}

// bootName returns the boot ID of a manager's computer, which every second one has. No computer reboots in a
// world; only processes restart.
func (m *managerHost) bootName() string {
	if m.index%2 == 1 {
		return ""
	}
	return m.label
}

func (m *managerHost) uptime() time.Duration {
	return time.Hour + time.Duration(m.Now-worldStart) + m.aged
}

// clocksApart is the difference between the wall clocks of consecutive managers: seconds, or minutes in some
// worlds.
func (w *world) clocksApart() time.Duration {
	if w.Seed%8 == 3 && !w.cfg.Graceful { // a failover then looks like a restore, which aborts moves
		return 3 * time.Minute
	}
	return 7 * time.Second
}

func (m *managerHost) wall() int64 {
	const start = 1_800_000_000
	since := time.Duration(m.Now-worldStart) + m.aged + time.Duration(m.index)*m.clocksApart()
	return start + int64(since/time.Second)
}

// A lag is additional latency of one manager's store requests: its disk or its connection is slow. The other
// managers are not affected.
type lag struct {
	shape lagShape
	most  time.Duration
	reads bool  // reads are slow too, but within the manager's timeout; otherwise it would be the same as storeCut
	since int64 // true time
}

type lagShape uint8

const (
	noLag lagShape = iota
	constantLag
	growingLag // from zero to most, during lagGrowth
	burstyLag  // zero or most, at random
	lagShapes
)

const lagGrowth = 20 * time.Second

// drawLag draws a lag: a part of the TTL, or a little more than the TTL. In the second case a leader has no
// authority, but its record still changes often enough.
func (n *nemesis) drawLag() lag {
	most := simTTL * time.Duration(1+n.Random.IntN(48)) / 32
	if n.Chance(3) {
		most = simTTL + n.Below(simTTL/5)
	}
	return lag{shape: constantLag + lagShape(n.Random.IntN(int(lagShapes-constantLag))), most: most, reads: n.Chance(4), since: n.Now}
}

// storeLag slows down a manager's store requests for a while, often so long that another one must take over.
// Usually only one manager is slow at a time.
func (n *nemesis) storeLag() bool {
	for _, m := range n.managers {
		if m.lag.shape != noLag && !n.Chance(4) {
			return false
		}
	}
	m := n.managers[n.Random.IntN(len(n.managers))]
	l, d := n.drawLag(), n.span(5*time.Second, 90*time.Second)
	m.lag = l
	n.detailf("of %s by up to %v for %v, shape %d, reads %t", m.label, l.most, d, l.shape, l.reads)
	n.after(d, func() {
		if m.lag == l {
			m.lag = lag{}
		}
	})
	return true
}

// of returns the additional latency of a request that is sent now.
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

func writes(what any) bool {
	switch what.(type) {
	case byrecord.Read, manager.ReadEnd, managerproc.Load, managerproc.LoadCatalog:
		return false
	}
	return true
}

// lagPatience is the timeout of a request for the leader record, in the simulation and in a real manager.
const lagPatience = simTTL / 2

// giveUpLate schedules the timeout of a request of a manager with a lag.
func (s *store) giveUpLate(r *storeRequest) {
	patience := storeWait
	switch r.what.(type) {
	case byrecord.Read, byrecord.Swap:
		patience = lagPatience
	}
	s.Later(patience, engine.Nowhere, 0, &giveUp{r})
}
