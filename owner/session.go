package owner

import (
	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
)

// A session is the machine, which is told of a sleep before it hears of
// anything else. What it publishes is marked with the epoch that it knows of:
// should the computer have slept again, checks see another epoch and fail,
// whatever the machine may publish before it is told.
//
// It also remembers what the machine does not: whether the leader has accepted
// us.
type session struct {
	*driver.SuspendAware[machine.Event, machine.Action]
	owner *machine.Machine // the same, for what is not a step

	// The newest reply that is not a refusal. The machine may have dropped it;
	// a request that says that it was applied proves that it has not.
	term leasehold.Term
	seq  protocol.Seq

	heard func(now mono.Instant, r *protocol.LeaseReply) // if set, is told of each reply
}

func newSession(m *machine.Machine, d *clock.Detector, heard func(mono.Instant, *protocol.LeaseReply)) *session {
	return &session{owner: m, heard: heard, SuspendAware: driver.DetectSuspend[machine.Event, machine.Action](m, d, machine.Slept{})}
}

// Step is the machine's.
func (s *session) Step(now mono.Instant, e machine.Event) ([]machine.Action, mono.Instant) {
	if r, ok := e.(machine.Reply); ok {
		if s.heard != nil {
			s.heard(now, r.LeaseReply)
		}
		if r.Refusal == leasehold.Other && r.Incumbent == nil {
			s.term, s.seq = r.Term, r.Seq
		}
	}
	return s.SuspendAware.Step(now, e)
}

// accepted reports whether a request tells the leader that its offer has
// arrived: the session is then its member.
func (s *session) accepted(r *protocol.LeaseRequest) bool {
	return s.seq != 0 && r.Term == s.term && r.Applied == s.seq && !r.Leaving
}
