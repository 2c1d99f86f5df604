// Package table is the lease table of one namespace: who holds which range
// under which generation, as a value that is changed only by numbered changes.
//
// The manager decides changes and commits them to its store; lookups apply the
// very same changes in the same order. A table at LSN n is therefore the same
// everywhere, and Apply is the one place that says what a change does.
package table

import (
	"fmt"
	"iter"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
)

// A Holder is one session of an owner. It is immutable: what changes about an
// owner while it runs is not part of the table.
type Holder struct {
	Owner   leasehold.OwnerID
	Session leasehold.Session
	Addr    string  // where callers reach it
	Weight  float64 // its share of the keys, relative to the others; 1 is usual
	// Process identifies the operating system process, so that a successor on
	// the same machine can find out that it is gone. It may be empty.
	Process string
}

func (h *Holder) String() string { return string(h.Owner) + "/" + h.Session.Short() }

// An Entry is what the table says about a range of keys.
type Entry struct {
	Generation leasehold.Generation // 0: nobody holds the range
	Holder     *Holder              // nil: nobody holds the range
	// Lost is the change at which state in this range was last lost, 0 if it
	// never was. A lookup that skips from LSN n to a later table missed no loss
	// but in ranges where Lost > n. Where ranges that were lost at different
	// times have become one, it is the latest.
	Lost leasehold.LSN
	// Adopted is the generation under which a leader without a store found the range when
	// it took over, or one that could not exclude that its store was restored (see [Gap]); 0
	// if it did not. The first knows nothing about losses before that, and Lost is where its
	// log begins.
	// But a generation that is still held was held all along: a lookup that knew the
	// range under this one missed no loss, whatever Lost says. Where ranges that were
	// found under several generations have become one, it is the newest of them.
	Adopted leasehold.Generation
}

// missed reports whether a lookup that knew a range as before, in an earlier table at
// lsn, may have missed a loss in it if it is now as e.
func (e Entry) missed(before Entry, lsn leasehold.LSN) bool {
	return e.lostSince(lsn) && (e.Adopted == 0 || e.Adopted != before.Generation)
}

// lostSince reports whether state in the range may have been lost after lsn.
func (e Entry) lostSince(lsn leasehold.LSN) bool { return e.Lost > lsn && !e.adoptedBy(lsn) }

// ByTerm is the least number of a group without a store. Such a group numbers changes and
// generations by terms, which are milliseconds since 1970. All numbers of groups with a store
// are below it, until the year 2242 (see internal/core/storage).
const ByTerm = 1 << 53

// adoptedBy reports whether the range is proven to have been held at lsn under the
// generation under which it was adopted, and so to have lost nothing between the two.
// In a group without a store a generation is the LSN of the change that granted it.
func (e Entry) adoptedBy(lsn leasehold.LSN) bool {
	return e.Adopted >= ByTerm && leasehold.LSN(e.Adopted) <= lsn
}

// Vacant reports whether nobody holds the range.
func (e Entry) Vacant() bool { return e.Holder == nil }

// heldBy reports whether h is who holds the range: nobody, if h is nil.
func (e Entry) heldBy(h *Holder) bool {
	if e.Holder == nil || h == nil {
		return e.Holder == h
	}
	return e.Holder.Session == h.Session
}

// A Kind says what a change does.
type Kind uint8

// The kinds of changes.
const (
	Granted Kind = 1 // a vacant range goes to Holder under a new Generation
	Vacated Kind = 2 // Holder's lease with this Generation ends on this range; its state is lost
	Moved   Kind = 3 // From's leases on this range end, and it goes, with its state, to Holder under a new Generation
)

// A Change is one step of a table's history.
type Change struct {
	LSN        leasehold.LSN
	Kind       Kind
	Range      leasehold.Range
	Generation leasehold.Generation
	Holder     *Holder
	Cause      leasehold.Cause // of a Vacated
	From       *Holder         // of a Moved
	Reason     Reason          // of the others, for people: nothing is decided by it
}

// A Reason says why an owner was given a range.
type Reason uint8

// The reasons. The protocol has the same numbers.
const (
	NoReason   Reason = 0 // it is not known
	Joined     Reason = 1 // the policy has divided the keys anew, because owners have joined
	Gone       Reason = 2 // because owners have gone
	Load       Reason = 3 // the policy has moved work from owners that have much to others
	Leaving    Reason = 4 // who had it wants to leave
	Drain      Reason = 5 // an operator has who had it drained
	Ordered    Reason = 6 // an operator has asked for this range to be moved
	Rebalance  Reason = 7 // an operator has asked for the policy to divide the keys anew
	Configured Reason = 8 // the namespace was configured otherwise
	Joint      Reason = 9 // leases of one owner that lay side by side were made one
)

// Loss returns the loss that the change records, if it records one.
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

// A Table is the lease table of one namespace at one LSN. It is not safe for
// concurrent use; a table that is no longer changed may be shared.
type Table struct {
	lsn     leasehold.LSN
	newest  leasehold.Generation
	gaps    []Gap // oldest first, at most maxGaps; immutable
	entries *keyrange.Map[Entry]
}

// New returns the empty table: LSN 0, everything vacant, no generation used.
func New() *Table { return &Table{entries: keyrange.NewMap(Entry{})} }

// Restore returns a table as an earlier one was: at lsn, with newest as the
// newest generation ever granted, and these entries.
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

// LSN returns the number of the last change applied.
func (t *Table) LSN() leasehold.LSN { return t.lsn }

// Newest returns the newest generation ever granted, held or not.
func (t *Table) Newest() leasehold.Generation { return t.newest }

// Len returns the number of ranges.
func (t *Table) Len() int { return t.entries.Len() }

// Clone returns a copy that can be changed independently.
func (t *Table) Clone() *Table {
	c := *t
	c.entries = t.entries.Clone()
	return &c
}

// At returns the entry of k and the range around k that shares it.
func (t *Table) At(k leasehold.Key) (leasehold.Range, Entry) { return t.entries.At(k) }

// All yields every range in order with its entry.
func (t *Table) All() iter.Seq2[leasehold.Range, Entry] { return t.entries.All() }

// Within yields the parts of r in order with their entries.
func (t *Table) Within(r leasehold.Range) iter.Seq2[leasehold.Range, Entry] {
	return t.entries.Within(r)
}

// Entries returns the map behind the table, for joint walks with other maps.
// It must not be changed.
func (t *Table) Entries() *keyrange.Map[Entry] { return t.entries }

// Apply makes the change, or says why it cannot follow on what is there and
// leaves the table as it was. A change that was committed always applies; an
// error means that two histories were mixed up.
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
			return t.refuse(c, "only what is moved comes from someone")
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
			// Of a part that was not found, or has been lost since, nothing is proven.
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
