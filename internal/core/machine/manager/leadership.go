package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A leadPhase says what part of its term a leader is in. It only advances.
type leadPhase uint8

const (
	takingOver leadPhase = iota // no step was taken yet
	leading
	deposed // another manager leads; nothing is done any more
)

// leadership is for how long we may act. Without authority we send nothing and expire no session: another
// manager may lead.
type leadership struct {
	term leasehold.Term
	// authority is when our time as leader ends, unless it is extended.
	authority mono.Instant
	// deafUntil is until when time without authority was added to the owners' deadlines.
	creditedUntil mono.Instant
	phase         leadPhase
	seq           protocol.Seq // our newest message to any session
}

// active reports whether we may act as leader at now.
func (l *leadership) active(now mono.Instant) bool { return now < l.authority }
