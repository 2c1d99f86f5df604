package owner

import (
	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
)

// A session is the machine with the sleep detector: after a suspension of the computer it gets
// a Slept event before any other event. Published holdings contain the epoch that
// the machine has processed. If the computer is suspended again, checks find another epoch and
// fail, even if the machine publishes before its Slept event.
//
// It also records whether the leader has accepted this owner.
type session struct {
	*driver.SuspendAware[machine.Event, machine.Action]
	owner *machine.Machine // the same machine, for methods other than Step

	// The newest reply that is not a refusal. The machine may have dropped it;
	// a request that acks it proves the contrary.
	term leasehold.Term
	seq  protocol.Seq

	onReply func(now mono.Instant, r *protocol.LeaseReply) // called with each reply
}

func newSession(m *machine.Machine, d *clock.Detector, onReply func(mono.Instant, *protocol.LeaseReply)) *session {
	return &session{owner: m, onReply: onReply, SuspendAware: driver.DetectSuspend[machine.Event, machine.Action](m, d, machine.Slept{})}
}

// Step runs a step of the machine.
func (s *session) Step(now mono.Instant, e machine.Event) ([]machine.Action, mono.Instant) {
	if r, ok := e.(machine.Reply); ok {
		if s.onReply != nil {
			s.onReply(now, r.LeaseReply)
		}
		if r.Refusal == leasehold.Other && r.Incumbent == nil {
			s.term, s.seq = r.Term, r.Seq
		}
	}
	return s.SuspendAware.Step(now, e)
}

// accepted reports whether a request acks the newest reply: then the leader has accepted
// this session.
func (s *session) accepted(r *protocol.LeaseRequest) bool {
	return s.seq != 0 && r.Term == s.term && r.Applied == s.seq && !r.Leaving
}
