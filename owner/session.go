package owner

import (
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
type session struct {
	*driver.SuspendAware[machine.Event, machine.Action]
	owner *machine.Machine // the same machine, for methods other than Step

	onReply func(now mono.Instant, r *protocol.LeaseReply) // called with each reply
}

func newSession(m *machine.Machine, d *clock.Detector, onReply func(mono.Instant, *protocol.LeaseReply)) *session {
	return &session{owner: m, onReply: onReply, SuspendAware: driver.DetectSuspend[machine.Event, machine.Action](m, d, machine.Slept{})}
}

// Step runs a step of the machine.
func (s *session) Step(now mono.Instant, e machine.Event) ([]machine.Action, mono.Instant) {
	if r, ok := e.(machine.Reply); ok && s.onReply != nil {
		s.onReply(now, r.LeaseReply)
	}
	return s.SuspendAware.Step(now, e)
}
