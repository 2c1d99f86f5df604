package sim

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// renumbered is the store putting a table in the place of a log, because it may have forgotten
// what came after it: was is what it had. Whatever was recorded before, and is not in the
// table, is lost from here on. It is I2 and I5: neither generations nor numbers of changes are
// given out a second time; and nobody may believe that what was lost was held all along.
func (o *oracle) renumbered(b *storage.Batch, was *table.Table) {
	w := o.world
	s := w.space(b.Namespace)
	t := o.truth(s)
	w.stats.renumbered++
	w.trace.mix(uint64(b.Base.LSN()), uint64(b.Base.Len()))
	w.trace.printf(w.now, "renumbered in %s: lsn %d after %d", s.name, b.Base.LSN(), b.Prev)
	o.checks[I2Generations]++
	if again, there := t.at[b.Base.LSN()]; there && w.store.era > 0 && again.hash == hashTable(b.Base) && t.table.LSN() == b.Base.LSN() {
		return // it was sent once more
	}
	if b.Base.LSN() <= t.table.LSN() || b.Base.Newest() < t.table.Newest() {
		o.violated(I2Generations, "%s: the log goes on at lsn %d after %d, generations after %d from %d on",
			s.name, b.Base.LSN(), t.table.LSN(), t.table.Newest(), b.Base.Newest())
		return
	}
	for r, e := range keyrange.Zip(was.Entries(), b.Base.Entries()) {
		if e.A.Generation != e.B.Generation || e.A.Holder != e.B.Holder {
			o.violated(I2Generations, "%s: %v is %v@%d, and was %v@%d before it was renumbered", s.name, r, e.B.Holder, e.B.Generation, e.A.Holder, e.A.Generation)
		}
	}
	for r, e := range keyrange.Zip(t.table.Entries(), b.Base.Entries()) {
		if !e.A.Vacant() && e.A.Generation != e.B.Generation {
			t.happen(table.Change{
				LSN: b.Base.LSN(), Kind: table.Vacated, Range: r, Generation: e.A.Generation, Holder: e.A.Holder, Cause: leasehold.CauseExpired,
			}, w.now)
		}
		if e.B.Adopted != 0 && e.A.Generation != e.B.Adopted && !w.nemesis.beyond {
			o.violated(I4Losses, "%s: %v is taken for %v@%d all along, but %v@%d was recorded", s.name, r, e.B.Holder, e.B.Adopted, e.A.Holder, e.A.Generation)
		}
	}
	t.begin(b.Base, true)
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
