package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A moveSet is the moves under way, and those that may begin. A move is in all, in its source's out and in its
// target's in, or in none of them.
type moveSet struct {
	all []*move // the oldest first
	// ready are sources of which a move may be able to begin.
	ready []*peer
	// unconfirmed are moves that are recorded, while the target has not said that
	// it has the lease: ticket to the source. Only of a leader whose table dies
	// with it.
	unconfirmed map[protocol.Ticket]leasehold.Session
}

// markReady remembers to look whether a move of p can begin.
func (ms *moveSet) markReady(p *peer) {
	if len(p.moves.backlog) > 0 && !p.moves.ready {
		p.moves.ready = true
		ms.ready = append(ms.ready, p)
	}
}

// unblock lets those begin who have waited for a target.
func (ms *moveSet) unblock(to *peer) {
	for _, p := range to.moves.blocked {
		ms.markReady(p)
	}
	to.moves.blocked = nil
}

// awaitsConfirmation reports whether a session that has left must be there for a while,
// should another leader ask what it has handed over.
func (ms *moveSet) awaitsConfirmation(s leasehold.Session) bool {
	for _, source := range ms.unconfirmed {
		if source == s {
			return true
		}
	}
	return false
}
