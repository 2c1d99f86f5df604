package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// checkDied is I12 at the store: a lease ends by a notice only if its process has ended.
func (o *oracle) checkDied(s *space, c *table.Change) {
	if c.Kind != table.Vacated || c.Cause != leasehold.CauseDied {
		return
	}
	o.Checks[I12Death]++
	if h := s.home[c.Holder.Session]; h != nil && h.alive && h.holder.Session == c.Holder.Session {
		o.Violated(I12Death, "%s: %v@%d of %v ends by a death notice, and its process runs on %s", s.name, c.Range, c.Generation, c.Holder, h.label)
	}
}

// checkAcknowledged is I12 at a leader that acknowledges a notice: the process has ended, and the store has no lease
// of its session.
func (o *oracle) checkAcknowledged(m *managerHost, r *deathReport, outcome protocol.DeathOutcome) {
	if outcome != protocol.DeathRecorded {
		return
	}
	o.Checks[I12Death]++
	session, s := r.notice.Session, o.space(r.notice.Namespace)
	if h := s.home[session]; h != nil && h.alive && h.holder.Session == session {
		o.Violated(I12Death, "%s acknowledges the death of %s, which runs on %s", m.label, session.Short(), h.label)
	}
	m.buried[protocol.Speaker{Namespace: r.notice.Namespace, Owner: r.notice.Owner, Session: session}] = m.node.Term()
	if o.cfg.Diskless || o.store.era > 0 {
		return // the table of another leader, or of a restored store
	}
	for keys, e := range o.truth(s).table.All() {
		if !e.Vacant() && e.Holder.Session == session {
			o.Violated(I12Death, "%s acknowledges the death of %v, and the store has its lease on %v", m.label, e.Holder, keys)
			return
		}
	}
}

// checkBuried is I12 for late messages: the leader that has acknowledged a death accepts no request of the session.
func (o *oracle) checkBuried(m *managerHost, r *protocol.LeaseRequest) {
	machine := m.node.Manager(r.Namespace)
	if r.Holder == nil || machine == nil || m.buried[r.Speaker()] != m.node.Term() {
		return
	}
	o.Checks[I12Death]++
	for _, h := range machine.Owners(m.now()) {
		if h.Holder.Session == r.Holder.Session {
			o.Violated(I12Death, "%s accepts a late message of %v, whose death it has acknowledged", m.label, h.Holder)
		}
	}
}

// crashesAtTheEnd kills a supervised owner of each namespace when everything works. Its ranges have other owners
// soon: I12.
func (o *oracle) crashesAtTheEnd() {
	for _, s := range o.spaces {
		var living []*ownerHost
		for _, h := range s.owners {
			if h.alive {
				living = append(living, h)
			}
		}
		i := slices.IndexFunc(living, func(h *ownerHost) bool {
			return h.supervised() && (h.manager == nil || h.manager.node.Term() == 0) // a new leader is not prompt
		})
		if i < 0 || len(living) < 2 {
			continue
		}
		o.Printf("*** %s crashes at the end", living[i].label)
		living[i].kill()
		o.Branches["death: at the end"]++
	}
	o.After(prompt, o.regranted)
}

// prompt is the maximum time until the ranges of a dead process have other owners, if nothing else fails: one
// exchange between supervisor and leader, and one between leader and owner. A lease lasts much longer.
const prompt = 2 * exchange

func (o *oracle) regranted() {
	o.Checks[I12Death]++
	o.checkOwned(I12Death, time.Duration(prompt), "after a crash with a supervisor")
}
