package table

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
)

// A Gap is a jump in a table's LSNs and generations.
//
// Problem: a store restored from a backup has lost the end of its history, and the numbers of that
// part must not be assigned again: lookups have seen the LSNs, owners and databases the
// generations. Idea: a leader that cannot rule out a restore continues both sequences at a number
// far above (Base). Nothing else changes. If nothing was restored, which is the usual case, a
// lookup whose LSN is before the gap has missed only the changes that the table records.
//
// A lookup whose LSN is inside the gap has a table of the lost history. It can rely only on
// generations: a lease that still has the same generation was held without interruption.
//
// The zero Gap means that there is none.
type Gap struct {
	From   leasehold.LSN        // all LSNs from From to After are of this history
	After  leasehold.LSN        // last LSN before the gap
	Base   leasehold.LSN        // first LSN and newest generation after the gap
	Newest leasehold.Generation // newest generation before the gap
}

// maxGaps is the number of gaps that a table keeps. Each is an outage of all managers, or a
// restore. An LSN before the oldest one is treated like an LSN of a lost history.
const maxGaps = 64

func (g Gap) valid() bool { return g.From <= g.After && g.After < g.Base }

// Gap returns the newest gap of the table.
func (t *Table) Gap() Gap {
	if n := len(t.gaps); n > 0 {
		return t.gaps[n-1]
	}
	return Gap{}
}

// Gaps returns all gaps of the table, oldest first. It must not be changed.
func (t *Table) Gaps() []Gap { return t.gaps }

// LostGeneration reports whether a generation is inside a gap, so that it was granted in a history
// that was lost.
func (t *Table) LostGeneration(generation leasehold.Generation) bool {
	return slices.ContainsFunc(t.gaps, func(g Gap) bool {
		return generation > g.Newest && generation < leasehold.Generation(g.Base)
	})
}

// WithGaps returns the table with the gaps that were stored with it, oldest first. It shares the
// entries, and keeps the slice.
func (t *Table) WithGaps(gaps []Gap) (*Table, error) {
	if len(gaps) > maxGaps {
		return nil, leasehold.Errorf("restore table", leasehold.ErrLimit, "", "%d gaps, at most %d are allowed", len(gaps), maxGaps)
	}
	after := Gap{}
	for _, g := range gaps {
		if !g.valid() || g.From < after.Base || g.Base > t.lsn || g.Newest > t.newest {
			return nil, leasehold.Errorf("restore table", leasehold.ErrInvalid, "",
				"a gap from lsn %d and generation %d to %d does not fit a table at lsn %d", g.After, g.Newest, g.Base, t.lsn)
		}
		after = g
	}
	c := *t
	c.gaps = gaps
	return &c, nil
}

// Rebased returns the table after a gap, at LSN and generation base. A range is adopted if held
// reports that its holder has held it without interruption. widen extends the last gap instead, if
// there were no changes since. Then lookups with a table from between the two must rely on
// generations.
func (t *Table) Rebased(base uint64, widen bool, held func(leasehold.Range, Entry) bool) *Table {
	var b keyrange.Builder[Entry]
	b.Grow(t.entries.Len())
	for r, e := range t.entries.All() {
		e.Adopted = 0
		if !e.Vacant() && held(r, e) {
			e.Adopted = e.Generation
		}
		b.Append(r.Start, e)
	}
	last, kept := t.Gap(), t.gaps
	gap := Gap{From: last.Base, After: t.lsn, Base: leasehold.LSN(base), Newest: t.newest}
	if widen && len(kept) > 0 && t.lsn == last.Base {
		gap.From, gap.After, gap.Newest = last.From, last.After, last.Newest
		kept = kept[:len(kept)-1]
	}
	gaps := slices.Concat(kept[max(0, len(kept)+1-maxGaps):], []Gap{gap})
	return &Table{lsn: gap.Base, newest: leasehold.Generation(base), gaps: gaps, entries: b.Map()}
}

// follows reports whether a table at lsn is an earlier state of this one.
func (t *Table) follows(lsn leasehold.LSN) bool {
	return lsn >= t.Gap().Base || slices.ContainsFunc(t.gaps, func(g Gap) bool { return lsn >= g.From && lsn <= g.After })
}

// Missed reports whether a lookup may have missed a loss in a range: its table at lsn had the entry
// before there, and this table has e.
func (t *Table) Missed(e, before Entry, lsn leasehold.LSN) bool {
	if !t.follows(lsn) {
		return e.Adopted == 0 || e.Adopted != before.Generation
	}
	return e.missed(before, lsn)
}

// LostSince reports whether state in a range with entry e may have been lost after lsn. With only
// an LSN, it may return true although nothing was lost: if lsn is of a lost history; and after a
// census, for a range that had no owner at that time or was moved after lsn.
func (t *Table) LostSince(e Entry, lsn leasehold.LSN) bool {
	return !t.follows(lsn) || e.lostSince(lsn)
}

// A Crossing is the difference between the table at Gap.After and the one at Gap.Base. After an
// outage thousands of lookups have the former, and a crossing is far smaller than a snapshot.
type Crossing struct {
	Gap Gap
	// Silent are the sessions with no adopted range at Gap.Base: the leader has not received a
	// request from them. There may be hundreds, with many ranges each.
	Silent []leasehold.Session
	// Unproven are the starts of all other ranges that are held but not adopted, in order.
	Unproven []leasehold.Key
}

// Crossing returns the difference between this table and the result of [Table.Rebased].
func (t *Table) Crossing(rebased *Table) *Crossing {
	c := &Crossing{Gap: rebased.Gap()}
	adopted, listed := make(map[leasehold.Session]bool), make(map[leasehold.Session]bool)
	for _, e := range rebased.entries.All() {
		if e.Adopted != 0 {
			adopted[e.Holder.Session] = true
		}
	}
	for r, e := range keyrange.Zip(t.entries, rebased.entries) {
		if e.A.Vacant() || e.B.Adopted != 0 {
			continue
		}
		switch s := e.A.Holder.Session; {
		case adopted[s]:
			c.Unproven = append(c.Unproven, r.Start)
		case !listed[s]:
			listed[s] = true
			c.Silent = append(c.Silent, s)
		}
	}
	return c
}

// Cross returns the table at Gap.Base. It fails if this table is not the one before the gap.
func (t *Table) Cross(c *Crossing) (*Table, error) {
	silent := make(map[leasehold.Session]bool)
	for _, s := range c.Silent {
		silent[s] = true
	}
	rest := c.Unproven
	adopted := func(r leasehold.Range, e Entry) bool {
		if len(rest) > 0 && rest[0] == r.Start {
			rest = rest[1:]
			return false
		}
		return !silent[e.Holder.Session]
	}
	out := t.Rebased(uint64(c.Gap.Base), false, adopted)
	switch {
	case !c.Gap.valid() || t.lsn != c.Gap.After || t.newest != c.Gap.Newest:
		return nil, leasehold.Errorf("cross gap", leasehold.ErrInvalid, "",
			"a table at lsn %d and generation %d is not before a gap from lsn %d and generation %d", t.lsn, t.newest, c.Gap.After, c.Gap.Newest)
	case len(rest) > 0:
		return nil, leasehold.Errorf("cross gap", leasehold.ErrInvalid, "", "no range is held that starts at %v", rest[0])
	}
	out.gaps[len(out.gaps)-1] = c.Gap
	return out, nil
}
