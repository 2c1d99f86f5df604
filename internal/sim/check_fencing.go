package sim

import "github.com/leasehold-dev/leasehold"

// A fence is a store that checks fencing tokens: for each of a few registers
// it remembers the highest generation that has written. It is what keeps data
// right even when an owner's clock is broken.
type fence struct {
	registers [16]struct {
		token  leasehold.Generation
		writer leasehold.Session
	}
}

// write is I9: what gets through the fence never goes back, and one token is
// never used by two sessions.
func (o *oracle) write(h *ownerHost, op *operation) {
	o.checks[I9Fencing]++
	r := &o.truth(h.space).fence.registers[op.key>>60]
	switch g := op.lease.Generation; {
	case g < r.token:
		o.world.stats.fenced++
	case g == r.token && r.writer != h.holder.Session:
		o.violated(I9Fencing, "%s writes with token %d, which session %s has used", h.label, g, r.writer.Short())
	default:
		r.token, r.writer = g, h.holder.Session
	}
}
