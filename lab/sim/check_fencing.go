package sim

import "github.com/leasehold-dev/leasehold"

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
	o.checks[I9Fencing]++
	r := &o.truth(h.space).fence.registers[i]
	switch g := op.lease.Generation; {
	case g < r.token && held && !o.world.nemesis.beyond && !o.truth(h.space).lostToken(r.token):
		o.world.Violated(I9Fencing, "%s holds %v, but the fence has seen token %d", h.label, op.lease, r.token)
	case g < r.token:
		o.world.Branches["store: write fenced"]++
	case g == r.token && r.writer != h.holder.Session:
		o.world.Violated(I9Fencing, "%s writes with token %d, which session %s has used", h.label, g, r.writer.Short())
	default:
		r.token, r.writer = g, h.holder.Session
	}
}
