package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A carried lease is one whose state is with the target of a move, which does not serve it yet: its
// source has let go of it, since the target has confirmed that it has the state. The lease is the
// source's until the move is recorded, and the target's from then on.
type carried struct {
	leasehold.Lease
	from, to leasehold.Session
	at       int64 // when the source let go of it
}

// carries notes what a source has let go of. It still has the moves that these leases went with.
func (o *oracle) carries(h *ownerHost, leases []leasehold.Lease) {
	t := o.truth(h.space)
	for _, l := range leases {
		for _, out := range h.outgoing {
			if out.Range.Covers(l.Range) {
				t.carried = append(t.carried, carried{l, h.holder.Session, out.To.Session, o.Now})
			}
		}
	}
}

// recorded makes what a source has let go of the target's, when that is recorded.
func (t *truth) recorded(c *table.Change) {
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

// served ends what is carried as one generation: the target serves it, or has failed to put it in place, or
// it was recalled before that.
func (t *truth) served(g leasehold.Generation) {
	t.carried = slices.DeleteFunc(t.carried, func(m carried) bool { return m.Generation == g })
}

// discards is a process dropping all that it has been sent, for a reason of its own.
func (o *oracle) discards(h *ownerHost) {
	t := o.truth(h.space)
	t.carried = slices.DeleteFunc(t.carried, func(m carried) bool { return m.to == h.holder.Session })
}

// checkCarried is I11 for state that moves, where a lease ends for another reason than silence: if
// source and target live, managers receive the requests of both, and neither was expired, the range
// goes to the target with its state. Whether it had to be expired is checked where that is recorded. It
// reports whether the lease moves.
func (o *oracle) checkCarried(s *space, t *truth, c *table.Change) bool {
	for _, m := range t.carried {
		if !m.endsWith(c) {
			continue
		}
		from, to := s.home[m.from], s.home[m.to]
		if o.returns(from, m.from) && o.returns(to, m.to) && max(t.expiredAt[m.from], t.expiredAt[m.to]) < m.at {
			o.Violated(I11Needless, "%s: %v has ended, although its state has been moved from %s to %s, and both live", s.name, m.Lease, from.label, to.label)
			return true
		}
	}
	return t.carries(c)
}

// endsWith reports whether a change ends the lease, or a part of it.
func (m *carried) endsWith(c *table.Change) bool {
	return m.Generation == c.Generation && m.Range.Overlaps(c.Range)
}

// carries reports whether the state of a lease that ends is with the target of a move.
func (t *truth) carries(c *table.Change) bool {
	return slices.ContainsFunc(t.carried, func(m carried) bool { return m.endsWith(c) })
}

// returns reports whether the process of a session lives, keeps what it has, and was not cut off
// from the leader for so long that it may have taken it for gone. What a leader has decided may take
// the store a while to record.
func (o *oracle) returns(h *ownerHost, session leasehold.Session) bool {
	return h != nil && h.alive && !h.asleep && !h.beyond && !h.leaving && h.keep == 0 && h.holder.Session == session &&
		!o.contested(h) && !o.alone(h) && (h.aloneUntil == 0 || o.Now-h.aloneUntil > int64(storeWait))
}

// alone reports whether leaders have not received a request of an owner for a lease, while
// they received those of others.
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
