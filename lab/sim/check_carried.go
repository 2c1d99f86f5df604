package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A carried lease is one whose state is at the target of a move, which does not serve it yet. Its source has
// released it, since the target has confirmed that it has the state. The lease belongs to the source until
// the move is recorded, and then to the target.
type carried struct {
	leasehold.Lease
	from, to leasehold.Session
	at       int64 // true time at which the source released it
}

// addCarried records the leases that a source releases for a move. The source still has the moves.
func (o *oracle) addCarried(h *ownerHost, leases []leasehold.Lease) {
	t := o.truth(h.space)
	for _, l := range leases {
		for _, out := range h.outgoing {
			if out.Range.Covers(l.Range) {
				t.carried = append(t.carried, carried{l, h.holder.Session, out.To.Session, o.Now})
			}
		}
	}
}

// moveCarried passes carried leases to the target when their move is recorded.
func (t *truth) moveCarried(c *table.Change) {
	var next []carried
	for _, m := range t.carried {
		if c.From == nil || m.from != c.From.Session || m.to != c.Holder.Session || !m.Range.Overlaps(c.Range) {
			next = append(next, m)
			continue
		}
		part, _ := m.Range.Intersect(c.Range)
		next = append(next, carried{leasehold.Lease{Range: part, Generation: c.Generation}, m.to, m.to, m.at})
		for _, rest := range protocol.Missing([]leasehold.Lease{m.Lease}, []leasehold.Lease{{Range: part, Generation: m.Generation}}) {
			next = append(next, carried{rest, m.from, m.to, m.at})
		}
	}
	t.carried = next
}

// endCarried removes the carried leases of a generation: the target serves them, or could not install them,
// or they were recalled before.
func (t *truth) endCarried(g leasehold.Generation) {
	t.carried = slices.DeleteFunc(t.carried, func(m carried) bool { return m.Generation == g })
}

// dropCarried removes what a process has received, because it drops all of it for a reason of its own.
func (o *oracle) dropCarried(h *ownerHost) {
	t := o.truth(h.space)
	t.carried = slices.DeleteFunc(t.carried, func(m carried) bool { return m.to == h.holder.Session })
}

// checkCarried is I11 for state that moves, where a lease ends for another reason than expiry. If source and
// target run, their requests reach the managers, and neither was expired, then the range goes to the target
// with its state. The check of an expiry is in checkNeedless. checkCarried reports whether the lease moves.
func (o *oracle) checkCarried(s *space, t *truth, c *table.Change) bool {
	for _, m := range t.carried {
		if !m.endsWith(c) {
			continue
		}
		from, to := s.home[m.from], s.home[m.to]
		if o.reports(from, m.from) && o.returns(to, m.to) && max(t.expiredAt[m.from], t.expiredAt[m.to]) < m.at {
			o.Violated(I11Needless, "%s: %v ended, although its state has moved from %s to %s, and both run", s.name, m.Lease, from.label, to.label)
			return true
		}
	}
	return t.carries(c)
}

// endsWith reports whether a change ends the lease, or a part of it.
func (m *carried) endsWith(c *table.Change) bool {
	return m.Generation == c.Generation && m.Range.Overlaps(c.Range)
}

// carries reports whether the state of a lease that ends is at the target of a move.
func (t *truth) carries(c *table.Change) bool {
	return slices.ContainsFunc(t.carried, func(m carried) bool { return m.endsWith(c) })
}

// returns reports whether the process of a session stays, and reports what it has.
func (o *oracle) returns(h *ownerHost, session leasehold.Session) bool {
	return o.reports(h, session) && !h.leaving
}

// reports reports whether the process of a session runs, keeps its leases, and was not cut off from the
// leader for so long that it may have been expired. It may be leaving: the leader answers its goodbye when its moves
// are recorded. The store may take storeWait to record what a leader has decided.
func (o *oracle) reports(h *ownerHost, session leasehold.Session) bool {
	return h != nil && h.alive && !h.asleep && !h.beyond && h.keep == 0 && h.holder.Session == session &&
		!o.contested(h) && !o.alone(h) && (h.aloneUntil == 0 || o.Now-h.aloneUntil > int64(storeWait))
}

// alone reports whether the managers have not received a request of an owner for a lease, while they received
// requests of others.
func (o *oracle) alone(h *ownerHost) bool {
	_, renew := o.shortest(h.space)
	return o.silent(h) && h.aloneAt > h.heardAt && h.aloneAt < o.Now-int64(renew)
}

// silent reports whether leaders have not received a request of an owner for a lease.
func (o *oracle) silent(h *ownerHost) bool {
	lease, _ := o.shortest(h.space)
	return o.Now-h.heardAt >= int64(lease)
}

// shortest returns the shortest lease time and renewal interval that leaders may use for a namespace.
func (o *oracle) shortest(s *space) (lease, renew time.Duration) {
	lease, renew = simTiming().Lease, simTiming().Renew
	if ns := o.store.catalog.Find(s.name); ns != nil {
		lease, renew = min(lease, ns.Lease), min(renew, ns.Renew)
	}
	return lease, renew
}
