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
	I7Moved       engine.Invariant = "I7 moved"          // what is said to have moved has arrived, and no write is lost silently
	I8Bounds      engine.Invariant = "I8 bounds"         // everything is bounded
	I9Fencing     engine.Invariant = "I9 fencing"        // a fenced store accepts no older token after a newer one
	I10Isolation  engine.Invariant = "I10 isolation"     // namespaces do not touch
	I11Needless   engine.Invariant = "I11 needless loss" // no state of a living owner is lost but to another owner
	OneLeader     engine.Invariant = "one leader"        // at most one manager acts as leader: I1 rests on it
	NoLimping     engine.Invariant = "no limping"        // a manager that cannot lead keeps no other from it
	Census        engine.Invariant = "census"            // a leader without a store loses nothing of an owner that it hears
)

// An oracle sees the whole world at true time. Its checks are in check_*.go; this file
// is what they share.
type oracle struct {
	*world
	truths []*truth

	limping limping
	// catalogs are, where there is no store, the one that an operator knows of and
	// what was written since.
	catalogs []*storage.Catalog
}

// truth is what is really so in one namespace: the history that the store has
// linearized, and what followed from it.
type truth struct {
	table   *table.Table
	history []happened // all changes, in order
	// at is how many changes there were when the table was at an LSN, and what the
	// table's hash was then. Numbers that were never given out are not in it.
	at map[leasehold.LSN]version
	// losses[n] is how many of the first n changes are losses.
	losses []int
	resets []reset // in order

	grants    map[leasehold.Generation]*tenure
	taken     []taken // what owners have taken hold of, in order
	fence     fence
	forks     []lostHistory
	restores  []restored
	deletedAt int64 // when the namespace was last seen to be deleted

	// ending are leases of living owners that have ended, and whose ranges nobody has got yet;
	// servedAt is when a range of such an owner last went to another.
	ending   []ended
	servedAt map[leasehold.Session]int64

	version   uint64 // of the newest write
	written   [fencedKeys]written
	confirmed []confirmed
	transits  []passage
	carried   []carried
	expiredAt map[leasehold.Session]int64 // when a lease of a session last expired
}

// version is a table that there was.
type version struct {
	changes int
	hash    uint64
}

// reset is a table that a leader without a store has collected from the owners, and after how many changes.
type reset struct {
	changes int
	table   *table.Table
}

// happened is a change and when it was committed.
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

func (t *truth) happen(c table.Change, now int64) {
	t.history = append(t.history, happened{c, now})
	n := t.losses[len(t.losses)-1]
	if c.Kind == table.Vacated {
		n++
	}
	t.losses = append(t.losses, n)
}

// begin makes a table the beginning of another log.
func (t *truth) begin(tab *table.Table) {
	t.table = tab.Clone()
	t.resets = append(t.resets, reset{len(t.history), tab})
	t.stands()
}

func (t *truth) stands() { t.at[t.table.LSN()] = version{len(t.history), hashTable(t.table)} }

func (o *oracle) truth(s *space) *truth { return o.truths[s.index] }

// committed is the store linearizing a batch that the leader sent at an earlier instant.
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
		t.happen(*c, o.Now)
		t.stands()
		if c.Kind == table.Vacated && !o.nemesis.healed && o.losesState(s, t, c) {
			o.Branches["store: state lost"]++
		}
	}
}

// losesState reports whether state is lost for another reason than that its owner alone was silent for longer than a
// lease, while managers received requests of another one. A grant that never reached its owner has no state.
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
	o.takesHold(h)
	o.checkExclusive(h)
	o.checkReliance(h)
	o.checkQuarantine(h)
	o.checkOwnerBounds(h)
}

// recorded is a leader having made a batch part of its table.
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
