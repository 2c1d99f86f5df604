package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A lostHistory is what a store had lost when a table went on after a gap: the changes after
// the first LSN, up to the second.
type lostHistory struct {
	after, base leasehold.LSN
	newest      leasehold.Generation // before it
}

// restored is the changes that one restore has removed from the store.
type restored struct {
	after, upTo leasehold.LSN
	evident     bool // the store's identity shows that it was restored
}

// restored is the store having been replaced by a backup.
func (o *oracle) restored(evident bool) {
	for _, s := range o.spaces {
		t := o.truth(s)
		end := o.store.log(s.name).state(0).End()
		t.restores = append(t.restores, restored{end, t.table.LSN(), evident})
	}
}

// excused reports whether state that was lost by a change may be served again: a restore has
// removed the change from the store, and only owners could show that; or the change was never
// stored, but is what rebased has noted as lost.
func (t *truth) excused(lsn leasehold.LSN) bool {
	if slices.ContainsFunc(t.forks, func(l lostHistory) bool { return lsn == l.base }) {
		return true
	}
	covered := false
	for _, r := range t.restores {
		if lsn > r.after && lsn <= r.upTo {
			if r.evident {
				return false
			}
			covered = true
		}
	}
	return covered || t.wasLost(lsn)
}

// rebased is the store putting a table in the place of a log, after a gap in its numbers: was
// is what it had. Whatever was recorded before, and is not in the table, is lost from here on.
// It is I2 and I5: neither generations nor LSNs are given out a second time; and no lookup may
// take for held all along what was not.
func (o *oracle) rebased(b *storage.Batch, was *table.Table) {
	s := o.space(b.Namespace)
	t := o.truth(s)
	o.Branches["store: log rebased"]++
	o.Mix(uint64(b.Base.LSN()), uint64(b.Base.Len()))
	o.Printf("rebased in %s: lsn %d after %d", s.name, b.Base.LSN(), b.Prev)
	o.Checks[I2Generations]++
	if again, there := t.at[b.Base.LSN()]; there && o.store.era > 0 && again.hash == hashTable(b.Base) && t.table.LSN() == b.Base.LSN() {
		return // it was sent once more
	}
	if b.Base.LSN() <= t.table.LSN() || b.Base.Newest() < t.table.Newest() {
		o.Violated(I2Generations, "%s: the log goes on at lsn %d after %d, generations after %d from %d on",
			s.name, b.Base.LSN(), t.table.LSN(), t.table.Newest(), b.Base.Newest())
		return
	}
	for r, e := range keyrange.Zip(was.Entries(), b.Base.Entries()) {
		if e.A.Generation != e.B.Generation || e.A.Holder != e.B.Holder || e.A.Lost != e.B.Lost {
			o.Violated(I2Generations, "%s: %v is %v@%d, and was %v@%d before the gap", s.name, r, e.B.Holder, e.B.Generation, e.A.Holder, e.A.Generation)
		}
	}
	t.forks = append(t.forks, lostHistory{b.Base.Gap().After, b.Base.LSN(), b.Base.Gap().Newest})
	for r, e := range keyrange.Zip(t.table.Entries(), b.Base.Entries()) {
		if !e.A.Vacant() && e.A.Generation != e.B.Generation {
			t.happen(table.Change{
				LSN: b.Base.LSN(), Kind: table.Vacated, Range: r, Generation: e.A.Generation, Holder: e.A.Holder, Cause: leasehold.CauseExpired,
			}, o.Now)
		}
		if e.B.Adopted != 0 && e.A.Generation != e.B.Adopted && !o.nemesis.beyond && !o.keptBy(s, r, e.B) {
			o.Violated(I4Losses, "%s: %v is taken for %v@%d all along, but %v@%d was recorded", s.name, r, e.B.Holder, e.B.Adopted, e.A.Holder, e.A.Generation)
		}
	}
	t.table = b.Base.Clone()
	t.stands()
}

// keptBy reports whether the process that a table names has kept a lease, state and all, even
// if a history that was lost has recorded its end.
func (o *oracle) keptBy(s *space, r leasehold.Range, e table.Entry) bool {
	h := s.home[e.Holder.Session]
	return h != nil && h.alive && h.holder.Session == e.Holder.Session && keeps(h.view, r.Start, e.Generation)
}

// astray reports whether an LSN was in a history that was lost.
func (t *truth) astray(lsn leasehold.LSN) bool {
	return slices.ContainsFunc(t.forks, func(l lostHistory) bool { return lsn > l.after && lsn < l.base })
}

// unsure reports whether a lookup cannot tell that a later table has followed on its own: it is
// astray, or the table has no longer all of its gaps.
func (t *truth) unsure(from, to leasehold.LSN) bool {
	gaps := 0
	for _, l := range t.forks {
		if from < l.base && l.base <= to {
			gaps++
		}
	}
	return gaps > 64 || t.astray(from)
}

// wasLost reports whether a change was part of a history that a store has lost, or is the loss
// of that: it has the number at which the table went on.
func (t *truth) wasLost(lsn leasehold.LSN) bool {
	return slices.ContainsFunc(t.forks, func(l lostHistory) bool { return lsn > l.after && lsn <= l.base })
}

// forsaken returns what a lookup of a history that was lost has lost when it goes on to a
// table: whatever is not held, all along, under the generation that it knew.
func forsaken(from, to *table.Table) []leasehold.Range {
	var out []leasehold.Range
	for r, e := range keyrange.Zip(from.Entries(), to.Entries()) {
		if !e.A.Vacant() && e.B.Adopted != e.A.Generation {
			out = append(out, r)
		}
	}
	return out
}

func (t *truth) lostToken(g leasehold.Generation) bool {
	return slices.ContainsFunc(t.forks, func(l lostHistory) bool { return g > l.newest && g < leasehold.Generation(l.base) })
}

// repeated reports whether a change is the very same as one that the store had before it was restored: a leader has sent
// it once more, because it does not know what has become of it.
func (t *truth) repeated(c *table.Change) bool {
	for i := len(t.history) - 1; i >= 0 && t.history[i].LSN >= c.LSN; i-- {
		if t.history[i].Change == *c {
			return true
		}
	}
	return false
}
