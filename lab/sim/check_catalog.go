package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

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
	o.checks[Census]++
	same := func(other *storage.Catalog) bool {
		return slices.EqualFunc(c.Namespaces, other.Namespaces, storage.Namespace.Equal)
	}
	if len(o.catalogs) > 0 && !slices.ContainsFunc(o.catalogs, same) {
		o.world.Violated(Census, "%s leads by version %d of the catalog, which is not what was acknowledged in version %d", m.label, c.Version, o.catalogs[0].Version)
	}
}
