package sim

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A tenure is a granted lease.
type tenure struct {
	session   leasehold.Session
	lsn       leasehold.LSN // of the grant
	granted   leasehold.Range
	installed bool
	parts     []leasehold.Range // of granted
	moved     bool              // it was granted with its state
	at        int64             // true time of the installation
}

// taken is a range that an owner has started to serve.
type taken struct {
	session leasehold.Session
	r       leasehold.Range
	at      int64
}

// checkChange is I2 at the store: generations strictly rise, a held range is not granted to another owner,
// and a lease that ends was in the table. It is I10 too: the session of a grant is of this namespace.
func (o *oracle) checkChange(s *space, t *truth, c *table.Change) {
	o.Checks[I2Generations]++
	if err := t.table.Apply(c); err != nil {
		o.Violated(I2Generations, "%s: %v", s.name, err)
		return
	}
	o.checkHome(s, c)
	o.checkMoved(s, t, c)
	if c.Kind != table.Vacated {
		t.grants[c.Generation] = &tenure{session: c.Holder.Session, lsn: c.LSN, granted: c.Range, moved: c.Kind == table.Moved}
	}
}

// checkInstall is I2 at the owners: a lease that an owner installs was committed for its session, and was not
// installed before.
func (o *oracle) checkInstall(h *ownerHost, l leasehold.Lease) {
	o.Checks[I2Generations]++
	switch g := o.truth(h.space).grants[l.Generation]; {
	case g == nil:
		o.Violated(I2Generations, "%s holds %v, which was not committed", h.label, l)
	case g.session != h.holder.Session:
		o.Violated(I2Generations, "%s (%v) holds %v, which was granted to session %s", h.label, h.holder, l, g.session.Short())
	case !g.granted.Covers(l.Range):
		o.Violated(I2Generations, "%s holds %v, of which only %v was granted", h.label, l, g.granted)
	case g.installed && g.at != o.Now:
		o.Violated(I2Generations, "%s installs %v for the second time", h.label, l)
	default:
		g.installed, g.at, g.parts = true, o.Now, append(g.parts, l.Range)
		h.granted = append(h.granted, l)
		o.truth(h.space).endCarried(l.Generation)
	}
}

// recordTaken records the granted leases that an owner serves from now on, except those that were suspended
// before.
func (o *oracle) recordTaken(h *ownerHost) {
	if len(h.granted) == 0 || !h.valid() {
		return
	}
	for _, l := range h.granted {
		if keeps(h.view, l.Range.Start, l.Generation) {
			o.truth(h.space).taken = append(o.truth(h.space).taken, taken{h.holder.Session, l.Range, o.Now})
		}
	}
	h.granted = nil
}

// checkHome is I10: a change in a namespace only has sessions and owners of that namespace. Messages are
// misrouted between namespaces all the time here.
func (o *oracle) checkHome(s *space, c *table.Change) {
	o.Checks[I10Isolation]++
	switch {
	case s.home[c.Holder.Session] == nil:
		o.Violated(I10Isolation, "%s: %v has a session that was never in this namespace", s.name, c)
	case c.Holder.Owner[0] != 'a'+byte(s.index):
		o.Violated(I10Isolation, "%s: %v has an owner of another namespace", s.name, c)
	}
}
