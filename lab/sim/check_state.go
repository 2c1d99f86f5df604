package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// written is the newest acknowledged write of a key, and the number of changes of the table at that time.
type written struct {
	version uint64
	at      int
}

// confirmed is an owner's confirmation that it has all the state of a range.
type confirmed struct {
	session leasehold.Session
	ticket  protocol.Ticket
	r       leasehold.Range
}

func (o *oracle) confirms(h *ownerHost, ticket protocol.Ticket, r leasehold.Range) {
	t := o.truth(h.space)
	t.confirmed = append(t.confirmed, confirmed{h.holder.Session, ticket, r})
}

// resumes removes the confirmation of a move whose source serves the range again: the target's state is stale.
func (o *oracle) resumes(h *ownerHost, ticket protocol.Ticket) {
	t := o.truth(h.space)
	t.confirmed = slices.DeleteFunc(t.confirmed, func(c confirmed) bool { return c.ticket == ticket })
}

// checkMoved is I7 at the store: the target of a recorded move has confirmed it, and the source does not
// serve the range.
func (o *oracle) checkMoved(s *space, t *truth, c *table.Change) {
	if c.Kind != table.Moved {
		return
	}
	o.Checks[I7Moved]++
	o.Branches["store: state moved"]++
	found := false
	for i := range t.confirmed {
		found = found || t.confirmed[i].session == c.Holder.Session && t.confirmed[i].r.Covers(c.Range)
	}
	if !found {
		o.Violated(I7Moved, "%s: %v, which has not confirmed it", s.name, c)
	}
	from := s.home[c.From.Session]
	if from == nil || from.holder.Session != c.From.Session || !from.valid() || from.beyond {
		return
	}
	for _, l := range from.view.Leases {
		if l.Range.Overlaps(c.Range) {
			o.Violated(I7Moved, "%s: %v, and %s still serves %v", s.name, c, from.label, l)
		}
	}
}

// checkRead is I7 and I4 for a caller: an owner serves a key with every acknowledged write, unless the table
// has recorded a loss since.
func (o *oracle) checkRead(h *ownerHost, key leasehold.Key, found uint64) {
	i := int(key >> 60)
	t := o.truth(h.space)
	known := t.written[i]
	if o.nemesis.beyond || found >= known.version {
		return
	}
	o.Checks[I7Moved]++
	for _, c := range t.history[known.at:] {
		if c.Kind == table.Vacated && c.Range.Contains(key) {
			return
		}
	}
	o.Violated(I7Moved, "%s has version %d of key %v, version %d was acknowledged, and no loss was recorded", h.label, found, key, known.version)
}

// checkRevived is the reverse of checkRead: state whose loss was recorded is not served.
func (o *oracle) checkRevived(h *ownerHost, key leasehold.Key, found record) {
	if found.version == 0 || o.nemesis.beyond {
		return
	}
	for _, c := range o.truth(h.space).history[found.at:] {
		if c.Kind == table.Vacated && c.Range.Contains(key) && !o.truth(h.space).excused(c.LSN) {
			o.Violated(I7Moved, "%s serves version %d of key %v, which was lost at lsn %d", h.label, found.version, key, c.LSN)
			return
		}
	}
}

// acknowledged records a write that was acknowledged to a caller.
func (o *oracle) acknowledged(h *ownerHost, op *operation) {
	w := &o.truth(h.space).written[int(op.key>>60)]
	if op.version > w.version {
		*w = written{op.version, len(o.truth(h.space).history)}
	}
}

// A fence is a store that checks fencing tokens: for each of a few keys it has the highest generation that
// has written. It protects data even if an owner's clock is too slow.
type fence struct {
	registers [fencedKeys]struct {
		token  leasehold.Generation
		writer leasehold.Session
	}
}

// The keys behind the fence are spread over the key space.
const fencedKeys = 16

func fencedKey(i int) leasehold.Key { return leasehold.Key(i)<<60 | 0x0123456789abcdef }

// checkWrite is I9: no token is used by two sessions, and the fence, which rejects older tokens, never
// rejects the holder of the lease.
func (o *oracle) checkWrite(h *ownerHost, op *operation, held bool) {
	i := int(op.key >> 60)
	if op.key != fencedKey(i) {
		return
	}
	o.Checks[I9Fencing]++
	r := &o.truth(h.space).fence.registers[i]
	switch g := op.lease.Generation; {
	case g < r.token && held && !o.nemesis.beyond && !o.truth(h.space).lostToken(r.token):
		o.Violated(I9Fencing, "%s holds %v, but the fence has seen token %d", h.label, op.lease, r.token)
	case g < r.token:
		o.Branches["store: write fenced"]++
	case g == r.token && r.writer != h.holder.Session:
		o.Violated(I9Fencing, "%s writes with token %d, which session %s has used", h.label, g, r.writer.Short())
	default:
		r.token, r.writer = g, h.holder.Session
	}
}
