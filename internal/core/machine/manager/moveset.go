package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A moveSet is the moves in progress, and the sources that may start one. A move is in all, in its source's out and
// in its target's in, or in none of them.
type moveSet struct {
	all []*move // the oldest first
	// ready are sources that may be able to start a move.
	ready []*peer
	// unconfirmed are recorded moves whose lease the target has not confirmed: ticket to the source. Only used if
	// the table is volatile.
	unconfirmed map[protocol.Ticket]leasehold.Session
}

// markReady marks p as a source that may be able to start a move.
func (ms *moveSet) markReady(p *peer) {
	if len(p.moves.backlog) > 0 && !p.moves.ready {
		p.moves.ready = true
		ms.ready = append(ms.ready, p)
	}
}

// unblock marks the sources that wait for a target.
func (ms *moveSet) unblock(to *peer) {
	for _, p := range to.moves.blocked {
		ms.markReady(p)
	}
	to.moves.blocked = nil
}

// awaitsConfirmation reports whether a session that has left must stay available, so that it can report its
// completed moves to the next leader.
func (ms *moveSet) awaitsConfirmation(s leasehold.Session) bool {
	for _, source := range ms.unconfirmed {
		if source == s {
			return true
		}
	}
	return false
}
