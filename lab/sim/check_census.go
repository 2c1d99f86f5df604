package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// censusDone checks the result of the census of a leader without a store. What the previous leader had
// recorded and the census has not found is now lost.
func (o *oracle) censusDone(m *managerHost, p *storage.Snapshot) {
	s := o.space(p.Namespace)
	t := o.truth(s)
	o.Branches["node: census"]++
	o.Mix(uint64(p.Table.LSN()), uint64(p.Table.Len()))
	o.Printf("%s has completed the census of %s", m.label, s.name)
	o.Checks[Census]++
	if _, again := t.at[p.Table.LSN()]; again || p.Table.LSN() <= t.table.LSN() || p.Table.Newest() < t.table.Newest() {
		o.Violated(I2Generations, "%s: the log continues at lsn %d after %d, generations after %d from %d on",
			s.name, p.Table.LSN(), t.table.LSN(), t.table.Newest(), p.Table.Newest())
		return
	}
	for r, e := range keyrange.Zip(t.table.Entries(), p.Table.Entries()) {
		o.checkFound(s, t, p.Table.LSN(), r, e.A, e.B)
	}
	t.begin(p.Table)
	o.checkKept(m, s, p)
}

// checkFound compares the recorded entry of a range with that of the census. Lookups derive from Adopted that
// the range was held without a gap, so that must be true.
func (o *oracle) checkFound(s *space, t *truth, at leasehold.LSN, r leasehold.Range, was, is table.Entry) {
	if !was.Vacant() && was.Generation != is.Generation && !o.inTransit(t, was, is) {
		o.Printf("%v of %v@%d was lost with the previous leader", r, was.Holder, was.Generation)
		t.add(table.Change{
			LSN: at, Kind: table.Vacated, Range: r, Generation: was.Generation, Holder: was.Holder, Cause: leasehold.CauseExpired,
		}, o.Now)
		if !o.nemesis.healed {
			o.Branches["store: state lost"]++
		}
	}
	if is.Adopted != 0 && was.Generation != is.Adopted && !o.inTransit(t, was, is) && !o.nemesis.beyond {
		o.Violated(Census, "%s: %v is adopted from %v@%d, but %v@%d was recorded", s.name, r, is.Holder, is.Adopted, was.Holder, was.Generation)
	}
}

// inTransit reports whether a range that the census found at its source was recorded as moved to a target
// that has not received it, or belongs to the same session.
func (o *oracle) inTransit(t *truth, was, is table.Entry) bool {
	if was.Vacant() || is.Adopted == 0 {
		return false
	}
	g := t.grants[was.Generation]
	return was.Holder.Session == is.Holder.Session || g != nil && !g.installed && g.moved
}

// checkKept checks that a failover does not end leases: an owner that the leader has renewed during the
// census keeps its leases.
func (o *oracle) checkKept(m *managerHost, s *space, p *storage.Snapshot) {
	for _, h := range s.owners {
		if h.renewed != p.Term || !h.valid() || h.beyond {
			continue
		}
		o.Checks[Census]++
		var found []leasehold.Lease
		for r, e := range p.Table.All() {
			if !e.Vacant() && e.Holder.Session == h.holder.Session {
				found = append(found, leasehold.Lease{Range: r, Generation: e.Generation})
			}
		}
		if missing := protocol.Missing(h.view.Kept, found); len(missing) > 0 {
			o.Violated(Census, "the census of %s has lost %v of %s, which runs and was renewed by it", m.label, missing[0], h.label)
		}
	}
}

// The guarantee of a group without a store about its catalog: an acknowledged catalog is not lost, unless a
// majority of managers has lost it.

// catalogProposed records a catalog that a leader starts to write: it may become committed.
func (o *oracle) catalogProposed(c *storage.Catalog) {
	o.noteDeleted(c)
	o.catalogs = append(o.catalogs, c)
}

// catalogCommitted records that a majority has a catalog, and that the leader has acknowledged it: earlier
// proposals cannot come back.
func (o *oracle) catalogCommitted(c *storage.Catalog) {
	o.noteDeleted(c)
	o.catalogs, o.catalogLoss = []*storage.Catalog{c}, false
}

// catalogLost records that a leader replaces the catalog. A catalog that all managers have is not lost.
func (o *oracle) catalogLost(m *managerHost, blank bool) {
	o.Checks[Census]++
	if m.node.Leads(m.now()) && !blank {
		o.Violated(Census, "%s finds that a majority has lost the catalog, and all managers have it", m.label)
	}
	o.catalogs, o.catalogLoss = nil, true
}

// blank reports whether a manager without a store has no catalog.
func (m *managerHost) blank() bool {
	return !m.alive || m.memory == nil || m.memory.council.Catalog() == nil
}

// checkCatalog checks the catalog that a new leader has loaded.
func (o *oracle) checkCatalog(m *managerHost, c *storage.Catalog) {
	o.Checks[Census]++
	same := func(other *storage.Catalog) bool {
		return slices.EqualFunc(c.Namespaces, other.Namespaces, storage.Namespace.Equal)
	}
	if len(o.catalogs) > 0 && !o.catalogLoss && !slices.ContainsFunc(o.catalogs, same) {
		o.Violated(Census, "%s leads with version %d of the catalog, which is neither the acknowledged version %d nor a later one", m.label, c.Version, o.catalogs[0].Version)
	}
}
