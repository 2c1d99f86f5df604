// Package table has the lease table of one namespace: the holder and generation of each range. It
// is changed only by changes with consecutive LSNs.
//
// The manager decides changes and commits them to its store; lookups apply the same changes in the
// same order. So a table at LSN n is the same everywhere. Only Apply implements changes.
package table

import (
	"fmt"
	"iter"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
)

// A Holder is one session of an owner. It is immutable: attributes of an owner that change at run
// time are not part of the table.
type Holder struct {
	Owner   leasehold.OwnerID
	Session leasehold.Session
	Addr    string  // address for callers
	Weight  float64 // relative share of the keys; 1 is usual
	// Process identifies the operating system process, so that a successor on the same machine can
	// detect that it has ended. It may be empty.
	Process string
	// DeathHash verifies the proof that the session's process has ended. Messages to owners and
	// lookups lack it.
	DeathHash DeathHash
}

func (h *Holder) String() string { return string(h.Owner) + "/" + h.Session.Short() }

// An Entry is the state of a range of keys.
type Entry struct {
	Generation leasehold.Generation // 0: vacant
	Holder     *Holder              // nil: vacant
	// Lost is the LSN of the last loss of state in this range, 0 if there was none. A lookup that
	// skips from LSN n to a later table missed losses only in ranges with Lost > n. If ranges with
	// different values are merged, it is the maximum.
	Lost leasehold.LSN
	// Adopted is the generation under which a new leader found the range held, 0 if it did not.
	// This applies to a leader without a store, and to one that cannot rule out that its store was
	// restored (see [Gap]). A leader without a store has no record of earlier losses, so Lost is
	// the start of its log. But a lease that still has the same generation was held without
	// interruption: a lookup that has seen the range with the generation Adopted missed no loss,
	// whatever Lost is. If ranges with different values are merged, it is the newest generation.
	Adopted leasehold.Generation
}

// missed reports whether a lookup may have missed a loss in a range: its table at lsn had the entry
// before there, and the range is now e.
func (e Entry) missed(before Entry, lsn leasehold.LSN) bool {
	return e.lostSince(lsn) && (e.Adopted == 0 || e.Adopted != before.Generation)
}

// lostSince reports whether state in the range may have been lost after lsn.
func (e Entry) lostSince(lsn leasehold.LSN) bool { return e.Lost > lsn && !e.adoptedBy(lsn) }

// ByTerm is the lowest number of a group without a store. Such a group derives LSNs and generations
// from terms, which are milliseconds since 1970. All numbers of groups with a store are lower,
// until the year 2242 (see internal/core/storage).
const ByTerm = 1 << 53

// adoptedBy reports whether the range was provably held at lsn under the generation Adopted, so
// that nothing was lost since. In a group without a store a generation is the LSN of the change
// that granted it.
func (e Entry) adoptedBy(lsn leasehold.LSN) bool {
	return e.Adopted >= ByTerm && leasehold.LSN(e.Adopted) <= lsn
}

// Vacant reports whether the range has no holder.
func (e Entry) Vacant() bool { return e.Holder == nil }

// heldBy reports whether h is the holder of the range; nil means that it is vacant.
func (e Entry) heldBy(h *Holder) bool {
	if e.Holder == nil || h == nil {
		return e.Holder == h
	}
	return e.Holder.Session == h.Session
}

// A Kind is the effect of a change.
type Kind uint8

// Kinds of changes.
const (
	Granted Kind = 1 // a vacant range is granted to Holder under a new Generation
	Vacated Kind = 2 // Holder's lease with this Generation ends on this range; its state is lost
	Moved   Kind = 3 // From's leases on this range end, and Holder gets it, with its state, under a new Generation
)

// A Change is one change of a table.
type Change struct {
	LSN        leasehold.LSN
	Kind       Kind
	Range      leasehold.Range
	Generation leasehold.Generation
	Holder     *Holder
	Cause      leasehold.Cause // for Vacated
	From       *Holder         // for Moved
	Reason     Reason          // for Granted and Moved; informational only
}

// A Reason is why an owner was granted a range.
type Reason uint8

// Reasons. The wire protocol has the same numbers.
const (
	NoReason   Reason = 0 // unknown
	Joined     Reason = 1 // policy: owners joined
	Gone       Reason = 2 // policy: owners left
	Load       Reason = 3 // policy: load balancing
	Leaving    Reason = 4 // the previous owner is leaving
	Drain      Reason = 5 // an operator drains the previous owner
	Ordered    Reason = 6 // an operator moved this range
	Rebalance  Reason = 7 // an operator requested a rebalance
	Configured Reason = 8 // the configuration of the namespace changed
	Joint      Reason = 9 // adjacent leases of one owner were merged
)

// Loss returns the loss that the change records, if any.
func (c *Change) Loss() (leasehold.Loss, bool) {
	if c.Kind != Vacated {
		return leasehold.Loss{}, false
	}
	return leasehold.Loss{
		Range: c.Range, Owner: c.Holder.Owner, Generation: c.Generation, Cause: c.Cause, LSN: c.LSN,
	}, true
}

func (c *Change) String() string {
	switch c.Kind {
	case Vacated:
		return fmt.Sprintf("lsn %d: %v@%d leaves %v (%v)", c.LSN, c.Range, c.Generation, c.Holder, c.Cause)
	case Moved:
		return fmt.Sprintf("lsn %d: %v@%d moves from %v to %v", c.LSN, c.Range, c.Generation, c.From, c.Holder)
	default:
		return fmt.Sprintf("lsn %d: %v@%d goes to %v", c.LSN, c.Range, c.Generation, c.Holder)
	}
}

// A Table is the lease table of one namespace at one LSN. It is not safe for concurrent use; a
// table that is not changed any more may be shared.
type Table struct {
	lsn     leasehold.LSN
	newest  leasehold.Generation
	gaps    []Gap // oldest first, at most maxGaps; immutable
	entries *keyrange.Map[Entry]
}

// New returns the empty table: LSN 0, all keys vacant, no generation used.
func New() *Table { return &Table{entries: keyrange.NewMap(Entry{})} }

// Restore returns a table from its stored parts: its LSN, the newest generation ever granted, and
// its entries.
func Restore(lsn leasehold.LSN, newest leasehold.Generation, entries *keyrange.Map[Entry]) (*Table, error) {
	t := &Table{lsn: lsn, newest: newest, entries: entries}
	for r, e := range entries.All() {
		if e.Vacant() != (e.Generation == 0) || e.Generation > newest || e.Lost > lsn || e.Adopted > e.Generation {
			return nil, leasehold.Errorf("restore table", leasehold.ErrInvalid, r.String(),
				"generation %d (newest %d), holder %v, lost at lsn %d (table at %d) do not fit together",
				e.Generation, newest, e.Holder, e.Lost, lsn)
		}
	}
	return t, nil
}

// LSN returns the LSN of the last change.
func (t *Table) LSN() leasehold.LSN { return t.lsn }

// Newest returns the newest generation ever granted, even if its lease has ended.
func (t *Table) Newest() leasehold.Generation { return t.newest }

// Len returns the number of ranges.
func (t *Table) Len() int { return t.entries.Len() }

// Clone returns a copy that can be changed independently.
func (t *Table) Clone() *Table {
	c := *t
	c.entries = t.entries.Clone()
	return &c
}

// At returns the entry of k and the range around k that has it.
func (t *Table) At(k leasehold.Key) (leasehold.Range, Entry) { return t.entries.At(k) }

// All yields all ranges in order with their entries.
func (t *Table) All() iter.Seq2[leasehold.Range, Entry] { return t.entries.All() }

// Within yields the parts of r in order with their entries.
func (t *Table) Within(r leasehold.Range) iter.Seq2[leasehold.Range, Entry] {
	return t.entries.Within(r)
}

// Entries returns the table's map, for iteration together with other maps. It must not be changed.
func (t *Table) Entries() *keyrange.Map[Entry] { return t.entries }

// Apply applies the change. If the change does not fit, Apply returns an error and leaves the table
// unchanged. A committed change always fits; an error means that two histories were mixed.
func (t *Table) Apply(c *Change) error {
	if c.LSN != t.lsn+1 {
		return t.refuse(c, "table is at lsn %d", t.lsn)
	}
	if !c.Range.Valid() || c.Holder == nil || c.Generation == 0 {
		return t.refuse(c, "change is incomplete")
	}
	next := Entry{}
	switch c.Kind {
	case Granted, Moved:
		if (c.Kind == Moved) != (c.From != nil) {
			return t.refuse(c, "a move needs a source, and only a move has one")
		}
		if c.Generation <= t.newest {
			return t.refuse(c, "generation %d is not newer than %d", c.Generation, t.newest)
		}
		next = Entry{Generation: c.Generation, Holder: c.Holder}
		unproven := false
		for r, e := range t.entries.Within(c.Range) {
			if !e.heldBy(c.From) {
				return t.refuse(c, "%v is held by %v at generation %d", r, e.Holder, e.Generation)
			}
			next.Lost = max(next.Lost, e.Lost)
			// A part that was not adopted, or was lost since, proves nothing.
			if next.Adopted = max(next.Adopted, e.Adopted); e.Adopted == 0 {
				unproven = true
			}
		}
		if unproven {
			next.Adopted = 0
		}
		t.newest = c.Generation
	case Vacated:
		if r, e := t.entries.At(c.Range.Start); e.Generation != c.Generation || !r.Covers(c.Range) {
			return t.refuse(c, "%v is at generation %d", r, e.Generation)
		}
		next.Lost = c.LSN
	default:
		return t.refuse(c, "unknown kind %d", c.Kind)
	}
	t.entries.Set(c.Range, next)
	t.lsn = c.LSN
	return nil
}

func (t *Table) refuse(c *Change, format string, args ...any) error {
	return leasehold.Errorf("apply change", leasehold.ErrInternal, c.String(), format, args...)
}
