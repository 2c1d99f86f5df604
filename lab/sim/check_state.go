package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// written is what callers know about a key: the newest write that an owner has
// acknowledged, and how many changes of the table there were at that time.
type written struct {
	version uint64
	at      int
}

// confirmed is an owner having said that it has all the state of a range.
type confirmed struct {
	session leasehold.Session
	ticket  protocol.Ticket
	r       leasehold.Range
}

func (o *oracle) confirms(h *ownerHost, ticket protocol.Ticket, r leasehold.Range) {
	t := o.truth(h.space)
	t.confirmed = append(t.confirmed, confirmed{h.holder.Session, ticket, r})
}

// resumes is a source serving a range again: what the target has is old.
func (o *oracle) resumes(h *ownerHost, ticket protocol.Ticket) {
	t := o.truth(h.space)
	t.confirmed = slices.DeleteFunc(t.confirmed, func(c confirmed) bool { return c.ticket == ticket })
}

// checkMoved is I7 at the store: what is recorded as moved has been confirmed by
// the owner that it goes to, and is not served by the one that it comes from.
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

// read is I7 and I4 from a caller's point of view: an owner serves a key with
// every write that was ever acknowledged, unless the table has recorded a loss
// since.
func (o *oracle) read(h *ownerHost, key leasehold.Key, found uint64) {
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

// risen is the other side of it: what was written before a recorded loss is never
// served after it.
func (o *oracle) risen(h *ownerHost, key leasehold.Key, found record) {
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

// acknowledged is a caller learning that its write has happened.
func (o *oracle) acknowledged(h *ownerHost, op *operation) {
	w := &o.truth(h.space).written[int(op.key>>60)]
	if op.version > w.version {
		*w = written{op.version, len(o.truth(h.space).history)}
	}
}

// A fence is a store that checks fencing tokens: for each of a few keys it
// remembers the highest generation that has written. It is what keeps data
// right even when an owner's clock is broken.
type fence struct {
	registers [fencedKeys]struct {
		token  leasehold.Generation
		writer leasehold.Session
	}
}

// The keys behind the fence are spread over the key space.
const fencedKeys = 16

func fencedKey(i int) leasehold.Key { return leasehold.Key(i)<<60 | 0x0123456789abcdef }

// write is I9: one token is never used by two sessions, and the fence, which
// refuses tokens older than one it has seen, never refuses the rightful holder.
func (o *oracle) write(h *ownerHost, op *operation, held bool) {
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
