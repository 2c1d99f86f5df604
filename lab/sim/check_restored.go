package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A lostHistory is the part of a history that the store has lost: the changes between two LSNs. The log
// continues at base.
type lostHistory struct {
	after, base leasehold.LSN
	newest      leasehold.Generation // of the store before the loss
}

// restored are the changes that one restore has removed from the store.
type restored struct {
	after, upTo leasehold.LSN
	evident     bool // the store's identity shows that it was restored
}

// restored records the changes that a restore removes.
func (o *oracle) restored(evident bool) {
	for _, s := range o.spaces {
		t := o.truth(s)
		end := o.store.log(s.name).state(0).End()
		t.restores = append(t.restores, restored{end, t.table.LSN(), evident})
	}
}

// excused reports whether state may be served although a change has recorded its loss: a restore has removed
// the change from the store, and only owners could prove it; or the change was not stored, but added by
// rebased.
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

// rebased checks a table that the store puts in place of a log, after a gap in its LSNs; was is the stored
// table before. What was recorded before and is not in the table is now lost. It is I2 and I5: no generation
// or LSN is used twice. And no range counts as adopted that was not held without a gap.
func (o *oracle) rebased(b *storage.Batch, was *table.Table) {
	s := o.space(b.Namespace)
	t := o.truth(s)
	o.Branches["store: log rebased"]++
	o.Mix(uint64(b.Base.LSN()), uint64(b.Base.Len()))
	o.Printf("rebased in %s: lsn %d after %d", s.name, b.Base.LSN(), b.Prev)
	o.Checks[I2Generations]++
	if again, there := t.at[b.Base.LSN()]; there && o.store.era > 0 && again.hash == hashTable(b.Base) && t.table.LSN() == b.Base.LSN() {
		return // duplicate
	}
	if b.Base.LSN() <= t.table.LSN() || b.Base.Newest() < t.table.Newest() {
		o.Violated(I2Generations, "%s: the log continues at lsn %d after %d, generations after %d from %d on",
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
			t.add(table.Change{
				LSN: b.Base.LSN(), Kind: table.Vacated, Range: r, Generation: e.A.Generation, Holder: e.A.Holder, Cause: leasehold.CauseExpired,
			}, o.Now)
		}
		if e.B.Adopted != 0 && e.A.Generation != e.B.Adopted && !o.nemesis.beyond && !o.keptBy(s, r, e.B) {
			o.Violated(I4Losses, "%s: %v is adopted from %v@%d, but %v@%d was recorded", s.name, r, e.B.Holder, e.B.Adopted, e.A.Holder, e.A.Generation)
		}
	}
	t.table = b.Base.Clone()
	t.recordVersion()
}

// keptBy reports whether the process in an entry still has the lease and its state, even if a lost history
// has recorded its end.
func (o *oracle) keptBy(s *space, r leasehold.Range, e table.Entry) bool {
	h := s.home[e.Holder.Session]
	return h != nil && h.alive && h.holder.Session == e.Holder.Session && keeps(h.view, r.Start, e.Generation)
}

// inLostHistory reports whether an LSN is in a lost history.
func (t *truth) inLostHistory(lsn leasehold.LSN) bool {
	return slices.ContainsFunc(t.forks, func(l lostHistory) bool { return lsn > l.after && lsn < l.base })
}

// unsure reports whether a lookup cannot determine if a later table follows on its own: its LSN is in a lost
// history, or the table does not contain all gaps any more.
func (t *truth) unsure(from, to leasehold.LSN) bool {
	gaps := 0
	for _, l := range t.forks {
		if from < l.base && l.base <= to {
			gaps++
		}
	}
	return gaps > 64 || t.inLostHistory(from)
}

// wasLost reports whether a change is in a lost history, or is one of the losses that rebased added: it has
// the LSN at which the log continues.
func (t *truth) wasLost(lsn leasehold.LSN) bool {
	return slices.ContainsFunc(t.forks, func(l lostHistory) bool { return lsn > l.after && lsn <= l.base })
}

// lostByGap returns what a lookup in a lost history must report when it receives a later table: all ranges
// that are not held without a gap under the generation in its own table.
func lostByGap(from, to *table.Table) []leasehold.Range {
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

// repeated reports whether a change equals one that the store had before it was restored: the leader has
// retried a commit with an unknown outcome.
func (t *truth) repeated(c *table.Change) bool {
	for i := len(t.history) - 1; i >= 0 && t.history[i].LSN >= c.LSN; i-- {
		if t.history[i].Change == *c {
			return true
		}
	}
	return false
}
