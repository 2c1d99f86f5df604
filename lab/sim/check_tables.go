package sim

import (
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// checkFollows is I5 at a lookup: its LSN never goes back, and its table is
// the table of that LSN.
func (o *oracle) checkFollows(l *lookupHost, t *table.Table) {
	if l.watch.known && t.LSN() < l.watch.lsn {
		o.world.Violated(I5Tables, "%s goes back from lsn %d to %d", l.label, l.watch.lsn, t.LSN())
		return
	}
	o.checkTable(l.host, l.space, t)
}

// checkTable is I5: what a process calls the table of LSN n is that table. It
// cannot be one that was never committed.
func (o *oracle) checkTable(h *host, s *space, t *table.Table) {
	o.checks[I5Tables]++
	truth := o.truth(s)
	version, known := truth.at[t.LSN()]
	if !known {
		o.world.Violated(I5Tables, "%s is at lsn %d of %s, which was never committed", h.label, t.LSN(), s.name)
		return
	}
	if hashTable(t) != version.hash {
		o.world.Violated(I5Tables, "%s has another table of %s at lsn %d than was committed", h.label, s.name, t.LSN())
	}
}

// hashTable condenses everything that a table says.
func hashTable(t *table.Table) uint64 {
	h := engine.Hash(t.LSN())
	for r, e := range t.All() {
		h.Mix(uint64(r.Start), uint64(e.Generation))
		h.Mix(uint64(e.Lost), uint64(e.Adopted))
		if !e.Vacant() {
			h.Mix(uint64(e.Holder.Session[0])<<8|uint64(e.Holder.Session[1]), uint64(len(e.Holder.Owner)))
		}
	}
	return uint64(h)
}
