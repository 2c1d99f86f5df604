package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// The plan may ask for many more moves than may be under way. Those that wait
// belong to their source. A source is looked at when something has happened that
// may let one of its moves begin, and not otherwise: with a thousand owners the
// backlog is long, and messages are many.

// wanted is a move that the plan asks for.
type wanted struct {
	leasehold.Range
	to *seat
}

// markAllReady lets everyone begin who has something to send, those who retire
// first.
func (m *Machine) markAllReady() {
	for _, retires := range []bool{true, false} {
		for _, s := range m.members.seats {
			if s.incumbent.exit.retires() == retires {
				m.moves.markReady(s.incumbent)
			}
		}
	}
}

// startMoves begins as many of the moves that the plan asks for as may be under
// way at a time, of those sources for which something has changed.
func (m *Machine) startMoves(now mono.Instant) {
	ready := m.moves.ready
	m.moves.ready = nil
	for _, p := range ready {
		p.moves.ready = false
		if m.members.sessions[p.holder.Session] != p || now < p.moves.retryAt {
			continue // it is gone, or a scan will come back to it
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

// startOrWait begins a move if it can, and reports whether it must wait.
func (m *Machine) startOrWait(now mono.Instant, p *peer, w wanted) bool {
	if w.to.gone {
		return false
	}
	if !p.moves.movable(w.to) {
		m.plan.rescan = true // it was taken for one that moves state: it must be recalled
		m.wakeAt(now)
		return false
	}
	to := w.to.incumbent
	switch {
	case p.moves.moving(w.Range):
		m.plan.rescanPending = true // a part of it is on its way: the rest is for later
		return false
	case !m.plan.stillWanted(w.Range, p, w.to):
		m.plan.rescan = true // p has let go of a part of it: the rest is for the next plan
		return false
	case p.unconfirmed(w.Range):
		return true // nobody is asked to send what it may not have
	case len(to.moves.in) >= m.cfg.Moves || to.acks.echo == 0:
		if !slices.Contains(to.moves.blocked, p) {
			to.moves.blocked = append(to.moves.blocked, p)
		}
		return true
	}
	m.start(now, p, to, w.Range)
	return false
}
