package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// collected is a leader without a store having found out what there is. Whatever
// the leader before it had recorded and it has not found is lost from here on.
func (o *oracle) collected(m *managerHost, p *storage.Snapshot) {
	s := o.space(p.Namespace)
	t := o.truth(s)
	o.Branches["node: census"]++
	o.Mix(uint64(p.Table.LSN()), uint64(p.Table.Len()))
	o.Printf("%s has found what there is of %s", m.label, s.name)
	o.Checks[Census]++
	if _, again := t.at[p.Table.LSN()]; again || p.Table.LSN() <= t.table.LSN() || p.Table.Newest() < t.table.Newest() {
		o.Violated(I2Generations, "%s: the log goes on at lsn %d after %d, generations after %d from %d on",
			s.name, p.Table.LSN(), t.table.LSN(), t.table.Newest(), p.Table.Newest())
		return
	}
	for r, e := range keyrange.Zip(t.table.Entries(), p.Table.Entries()) {
		o.checkFound(s, t, p.Table.LSN(), r, e.A, e.B)
	}
	t.begin(p.Table)
	o.checkKept(m, s, p)
}

// checkFound compares what was recorded with what is found of a range. What a
// lookup may believe to have been held all along was.
func (o *oracle) checkFound(s *space, t *truth, at leasehold.LSN, r leasehold.Range, was, is table.Entry) {
	if !was.Vacant() && was.Generation != is.Generation && !o.onItsWay(t, was, is) {
		o.Printf("%v of %v@%d was lost with the leader", r, was.Holder, was.Generation)
		t.happen(table.Change{
			LSN: at, Kind: table.Vacated, Range: r, Generation: was.Generation, Holder: was.Holder, Cause: leasehold.CauseExpired,
		}, o.Now)
		if !o.nemesis.healed {
			o.Branches["store: state lost"]++
		}
	}
	if is.Adopted != 0 && was.Generation != is.Adopted && !o.onItsWay(t, was, is) && !o.nemesis.beyond {
		o.Violated(Census, "%s: %v is taken for %v@%d all along, but %v@%d was recorded", s.name, r, is.Holder, is.Adopted, was.Holder, was.Generation)
	}
}

// onItsWay reports whether a range that is found as its source's was recorded as
// gone to a target, which has never heard of it, or as the source's in parts.
func (o *oracle) onItsWay(t *truth, was, is table.Entry) bool {
	if was.Vacant() || is.Adopted == 0 {
		return false
	}
	g := t.grants[was.Generation]
	return was.Holder.Session == is.Holder.Session || g != nil && !g.installed && g.moved
}

// checkKept is what a failover must not do: an owner that the leader has renewed
// while it asked keeps what it has.
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
			o.Violated(Census, "%s has lost %v of %s, which lives and had its time from it", m.label, missing[0], h.label)
		}
	}
}

// What a group without a store promises about its catalog: what an operator was
// told is not forgotten, unless too many managers have forgotten.

// proposed is a leader beginning to write a catalog: it may come to count.
func (o *oracle) proposed(c *storage.Catalog) {
	o.noteDeleted(c)
	o.catalogs = append(o.catalogs, c)
}

// settledOn is a majority having a catalog, and the leader saying so: nothing that
// was written before can come back.
func (o *oracle) settledOn(c *storage.Catalog) {
	o.noteDeleted(c)
	o.catalogs = []*storage.Catalog{c}
}

// forgotten is a leader having heard from all managers, most of whom know nothing.
func (o *oracle) forgotten() { o.catalogs = nil }

// checkCatalog looks at what a new leader leads by.
func (o *oracle) checkCatalog(m *managerHost, c *storage.Catalog) {
	o.Checks[Census]++
	same := func(other *storage.Catalog) bool {
		return slices.EqualFunc(c.Namespaces, other.Namespaces, storage.Namespace.Equal)
	}
	if len(o.catalogs) > 0 && !slices.ContainsFunc(o.catalogs, same) {
		o.Violated(Census, "%s leads by version %d of the catalog, which is not what was acknowledged in version %d", m.label, c.Version, o.catalogs[0].Version)
	}
}
