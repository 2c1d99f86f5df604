package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// The plan may require many more moves than may run at a time. Waiting moves belong to their source. A source is
// checked only after an event that may let one of its moves start: with a thousand owners the backlog is long, and
// messages are frequent.

// wanted is a move that the plan requires and that has not started.
type wanted struct {
	leasehold.Range
	to *seat
}

// markAllReady marks all sources with a backlog, retiring owners first.
func (m *Machine) markAllReady() {
	for _, retires := range []bool{true, false} {
		for _, s := range m.members.seats {
			if s.incumbent.exit.retires() == retires {
				m.moves.markReady(s.incumbent)
			}
		}
	}
}

// startMoves starts moves of the sources that are marked ready, up to the limit per owner.
func (m *Machine) startMoves(now mono.Instant) {
	ready := m.moves.ready
	m.moves.ready = nil
	for _, p := range ready {
		p.moves.ready = false
		if m.members.sessions[p.holder.Session] != p || now < p.moves.retryAt {
			continue // the session has ended, or a rescan follows
		}
		waiting := p.moves.backlog[:0]
		for i, w := range p.moves.backlog {
			if len(p.moves.out) >= m.cfg.Moves {
				waiting = append(waiting, p.moves.backlog[i:]...)
				break
			}
			if m.startOrWait(now, p, w) {
				waiting = append(waiting, w)
			}
		}
		p.moves.backlog = waiting
	}
}

// startOrWait starts a move if possible, and reports whether it must wait.
func (m *Machine) startOrWait(now mono.Instant, p *peer, w wanted) bool {
	if w.to.gone {
		return false
	}
	if !p.moves.movable(w.to) {
		m.plan.rescan = true // the target cannot move state, contrary to the assumption: the range must be recalled
		m.wakeAt(now)
		return false
	}
	to := w.to.incumbent
	switch {
	case p.moves.moving(w.Range):
		m.plan.rescanPending = true // a move of a part of it is in progress; the rest follows later
		return false
	case !m.plan.stillWanted(w.Range, p, w.to):
		m.plan.rescan = true // p has released a part of it; the next plan handles the rest
		return false
	case p.unconfirmed(w.Range):
		return true // the source may not have the range yet
	case len(to.moves.in) >= m.cfg.Moves || to.acks.echo == 0:
		if !slices.Contains(to.moves.blocked, p) {
			to.moves.blocked = append(to.moves.blocked, p)
		}
		return true
	}
	m.start(now, p, to, w.Range)
	return false
}
