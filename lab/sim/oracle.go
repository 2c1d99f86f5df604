package sim

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// The invariants that the simulator checks.
const (
	I1Exclusive   engine.Invariant = "I1 exclusive"      // at most one owner's check succeeds
	I2Generations engine.Invariant = "I2 generations"    // generations rise and are never reused
	I3Held        engine.Invariant = "I3 held"           // Held means held without a gap
	I4Losses      engine.Invariant = "I4 losses"         // every loss reaches every lookup
	I5Tables      engine.Invariant = "I5 tables"         // a lookup at LSN n has the table of LSN n
	I6Progress    engine.Invariant = "I6 progress"       // after faults stop, every key is owned within the bound
	I7Moved       engine.Invariant = "I7 moved"          // a range recorded as moved has its state, and no acknowledged write is lost without a recorded loss
	I8Bounds      engine.Invariant = "I8 bounds"         // everything is bounded
	I9Fencing     engine.Invariant = "I9 fencing"        // a fenced store accepts no older token after a newer one
	I10Isolation  engine.Invariant = "I10 isolation"     // namespaces do not touch
	I11Needless   engine.Invariant = "I11 needless loss" // a living owner loses state only to another owner
	I12Death      engine.Invariant = "I12 death"         // a death notice is honoured if, and only if, the process has ended, and at once
	OneLeader     engine.Invariant = "one leader"        // at most one manager acts as leader: I1 rests on it
	NoLimping     engine.Invariant = "no limping"        // a manager with slow writes does not prevent others from leading
	Workers       engine.Invariant = "workers"           // checks, AwaitEnd and callbacks agree on which leases have ended
	Census        engine.Invariant = "census"            // a leader without a store loses nothing of an owner that it receives requests from
)

// An oracle has the state of the whole world and the true time. This file has what its checks in check_*.go
// share.
type oracle struct {
	*world
	truths []*truth

	limping limping
	// catalogs are, without a store, the last catalog that was acknowledged to an operator, and those
	// proposed since. If it is lost, only those proposed since: a leader that has been deposed may propose some.
	catalogs    []*storage.Catalog
	catalogLoss bool
}

// truth is the true state of one namespace: the history that the store has linearized, and what the checks
// derive from it.
type truth struct {
	table   *table.Table
	history []happened // all changes, in order
	// at is the version of the table at each LSN. LSNs that were never assigned are not in it.
	at map[leasehold.LSN]version
	// losses[n] is the number of losses in the first n changes.
	losses []int
	resets []reset // in order

	grants    map[leasehold.Generation]*tenure
	taken     []taken // leases that owners have started to serve, in order
	fence     fence
	forks     []lostHistory
	restores  []restored
	deletedAt int64 // true time at which the namespace was last seen deleted

	// ending are leases of living owners that have ended, and whose ranges have no next owner yet; servedAt
	// is the true time at which a range of such an owner last went to another one.
	ending   []ended
	servedAt map[leasehold.Session]int64

	version   uint64 // of the newest write
	written   [fencedKeys]written
	confirmed []confirmed
	transits  []passage
	carried   []carried
	expiredAt map[leasehold.Session]int64 // when a lease of a session last expired
}

// version is a version of the table: the number of changes before it, and its hash.
type version struct {
	changes int
	hash    uint64
}

// reset is the table of a census, and the number of changes before it.
type reset struct {
	changes int
	table   *table.Table
}

// happened is a change and the true time of its commit.
type happened struct {
	table.Change
	at int64
}

func (o *oracle) addSpace() {
	t := table.New()
	o.truths = append(o.truths, &truth{
		table: t, at: map[leasehold.LSN]version{0: {0, hashTable(t)}}, losses: []int{0}, grants: make(map[leasehold.Generation]*tenure),
		servedAt: make(map[leasehold.Session]int64), expiredAt: make(map[leasehold.Session]int64),
	})
}

func (t *truth) add(c table.Change, now int64) {
	t.history = append(t.history, happened{c, now})
	n := t.losses[len(t.losses)-1]
	if c.Kind == table.Vacated {
		n++
	}
	t.losses = append(t.losses, n)
}

// begin starts a new log with a table.
func (t *truth) begin(tab *table.Table) {
	t.table = tab.Clone()
	t.resets = append(t.resets, reset{len(t.history), tab})
	t.recordVersion()
}

func (t *truth) recordVersion() { t.at[t.table.LSN()] = version{len(t.history), hashTable(t.table)} }

func (o *oracle) truth(s *space) *truth { return o.truths[s.index] }

// committed checks a batch that the store has linearized, and that the leader sent earlier.
func (o *oracle) committed(b *storage.Batch, sent int64) {
	s := o.space(b.Namespace)
	t := o.truth(s)
	for i := range b.Changes {
		c := &b.Changes[i]
		o.Mix(uint64(c.LSN)<<8|uint64(c.Kind), uint64(c.Generation)^uint64(c.Range.Start))
		if o.Traced() {
			o.Printf("committed in %s: %v", b.Namespace, c)
		}
		if o.store.era > 0 && t.repeated(c) {
			continue
		}
		o.checkChange(s, t, c)
		if o.Violation != nil {
			return
		}
		o.checkNeedless(s, t, c, sent)
		o.checkDied(s, c)
		t.add(*c, o.Now)
		t.recordVersion()
		if c.Kind == table.Vacated && !o.nemesis.healed && o.losesState(s, t, c) {
			o.Branches["store: state lost"]++
		}
	}
}

// losesState reports whether a change loses state, and the owner was not the only one without contact to the
// managers for longer than a lease. A grant that never reached its owner has no state.
func (o *oracle) losesState(s *space, t *truth, c *table.Change) bool {
	if g := t.grants[c.Generation]; g != nil && !g.installed {
		return false
	}
	h := s.home[c.Holder.Session]
	if h == nil || c.Cause != leasehold.CauseExpired || !o.alone(h) {
		return true
	}
	o.Branches["store: silent owner expired"]++
	return false
}

func (o *oracle) leads(m *managerHost, l byrecord.Lead) {
	o.Printf("%s leads in term %d", m.label, l.Term)
	o.authorized(m)
	o.checkOneLeader(m)
	o.checkStoodBack(m)
}

func (o *oracle) ownerStepped(h *ownerHost) {
	o.recordTaken(h)
	o.checkExclusive(h)
	o.checkHolds(h)
	o.checkReliance(h)
	o.checkQuarantine(h)
	o.checkOwnerBounds(h)
	o.checkWorkers(h)
}

// recorded checks a leader's table after a batch.
func (o *oracle) recorded(m *managerHost, ns leasehold.Namespace) {
	machine := m.node.Manager(ns)
	if machine == nil {
		return
	}
	o.checkTable(m.host, o.space(ns), machine.Table())
	o.checkManagerBounds(m, machine)
}

func (o *oracle) finish() {
	if o.Violation == nil {
		o.recovered()
		o.checkSettled()
		o.checkDrained()
		o.checkNeedlessLeft()
		o.checkSeams()
	}
}
