package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A leadPhase is the phase of a leader's term. It only advances.
type leadPhase uint8

const (
	takingOver leadPhase = iota // before the first step
	leading
	deposed // another manager leads; the machine has ended
)

// leadership is the authority to act as leader. Without it the machine sends nothing and expires no session:
// another manager may lead.
type leadership struct {
	term leasehold.Term
	// authority is when this manager's time as leader ends, unless it is extended.
	authority mono.Instant
	// creditedUntil is the time up to which periods without authority were added to the owners' deadlines.
	creditedUntil mono.Instant
	phase         leadPhase
	seq           protocol.Seq // newest message to any session
}

// active reports whether the machine has authority at now.
func (l *leadership) active(now mono.Instant) bool { return now < l.authority }
