package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Conjuncts of the invariant in lab/models/inductive, by their names there. They are stronger than I1: they fail
// as soon as two owners could have a lease at some rates of the clocks, before they do.
const (
	EndedLeaseIsInvalid engine.Invariant = "ended-lease-is-invalid" // a valid lease is one that the leader considers held
	HoldCoversLease     engine.Invariant = "hold-covers-lease"      // the leader's deadline is later than the end of the lease
	HoldCoversReply     engine.Invariant = "hold-covers-reply"      // and than the end of the lease after a reply in flight
	PreviousLeaseIsOver engine.Invariant = "previous-lease-is-over" // when the leader decides to grant a range, no lease of it is valid
)

// Proven has their names.
var Proven = []string{EndedLeaseIsInvalid, HoldCoversLease, HoldCoversReply, PreviousLeaseIsOver}

// inProof reports whether the proof applies to an owner: its process runs, and its clock keeps the bound.
func (o *oracle) inProof(h *ownerHost) bool {
	return h.alive && !h.asleep && !h.beyond && !o.cfg.LeasesOff
}

// outlasts reports whether a deadline of a leader is later than one of an owner, whatever the rates of their clocks are
// from now on.
func (o *oracle) outlasts(m *managerHost, until mono.Instant, h *ownerHost, end mono.Instant) bool {
	const rounding = time.Microsecond // of the simulated clocks
	left := end.Sub(h.now())
	return left <= 0 || simTiming().Drift.Stretch(left) <= until.Sub(m.now())+rounding
}

// checkHolds checks an owner with a new view against the leader that has authority.
func (o *oracle) checkHolds(h *ownerHost) {
	if h.view == h.judged || !o.inProof(h) {
		return
	}
	if h.judged = h.view; !h.valid() {
		return
	}
	for m, in := range o.leaders() {
		if in.space != h.space || m.asleep || !m.node.Leads(m.now()) {
			continue
		}
		held, until, known := in.Reserved(h.holder.Session)
		if known {
			o.Checks[EndedLeaseIsInvalid]++
			if ended := protocol.Missing(h.view.Kept, held); len(ended) > 0 {
				o.Violated(EndedLeaseIsInvalid, "%s (%v) holds %v, which has ended at %s", h.label, h.holder, ended[0], m.label)
			}
		}
		o.Checks[HoldCoversLease]++
		if !o.outlasts(m, until, h, h.view.Until) {
			o.Violated(HoldCoversLease, "%s (%v) holds its leases for %v, and %s for %v", h.label, h.holder, h.view.Until.Sub(h.now()), m.label, until.Sub(m.now()))
		}
	}
}

// checkReply checks a reply that a leader sends, if it answers the newest request of its owner.
func (o *oracle) checkReply(m *managerHost, h *ownerHost, r *protocol.LeaseReply) {
	if len(r.Offers) == 0 || h.holder.Session != r.Session || r.Echo != h.sent || !o.inProof(h) {
		return
	}
	machine := m.node.Manager(h.space.name)
	if machine == nil {
		return // a census, which grants nothing
	}
	o.Checks[HoldCoversReply]++
	end := h.sentAt.Add(r.Timing.Lease)
	if _, until, _ := machine.Reserved(r.Session); !o.outlasts(m, until, h, end) {
		o.Violated(HoldCoversReply, "%s offers leases to %s (%v) for %v, and waits for %v", m.label, h.label, h.holder, end.Sub(h.now()), until.Sub(m.now()))
	}
}

// checkDecided checks a batch that a leader sends to the store.
func (o *oracle) checkDecided(m *managerHost, b *storage.Batch) {
	if len(b.Changes) == 0 || !m.node.Leads(m.now()) {
		return
	}
	o.Checks[PreviousLeaseIsOver]++
	for _, h := range o.space(b.Namespace).owners {
		if !o.inProof(h) || !h.valid() {
			continue
		}
		for i := range b.Changes {
			if l, _, serves := overlap(h.view.Leases, []leasehold.Lease{{Range: b.Changes[i].Range}}); serves {
				o.Violated(PreviousLeaseIsOver, "%s decides %v, while %s (%v) checks %v", m.label, &b.Changes[i], h.label, h.holder, l)
			}
		}
	}
}
