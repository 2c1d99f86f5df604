package managerproc

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A machine may end before its term: its namespace is deleted, or its new configuration is invalid.
// The namespace may come back in the same term, with a new machine that has no record of the last
// batch of the first one. The store's guard, which is the term, does not distinguish the two
// machines. So a machine with a commit in flight is kept until the store has the batch; the table
// is read again only then.

// past is the final state of a namespace's earlier machines in this term.
type past struct {
	seq protocol.Seq  // newest message sent to owners
	lsn leasehold.LSN // LSN of the table when the last machine ended
}

// retired is a machine that only finishes its commit.
type retired struct {
	ns      leasehold.Namespace
	machine *manager.Machine
	wake    mono.Instant
}

func (m *Machine) findRetired(ns leasehold.Namespace) *retired {
	for _, r := range m.retired {
		if r.ns == ns {
			return r
		}
	}
	return nil
}

// retire ends a namespace's machine, or its census, if it has one.
func (m *Machine) retire(n *namespace) {
	m.endCensus(n)
	if n.machine == nil {
		return
	}
	if n.committing {
		m.retired = append(m.retired, &retired{n.name(), n.machine, n.wake})
	}
	m.recordPast(n.name(), n.machine)
	n.machine, n.committing = nil, false
}

func (m *Machine) recordPast(ns leasehold.Namespace, machine *manager.Machine) {
	m.setPast(ns, past{machine.Seq(), machine.Table().LSN()})
}

func (m *Machine) setPast(ns leasehold.Namespace, p past) {
	if m.past == nil {
		m.past = map[leasehold.Namespace]past{}
	}
	m.past[ns] = p
}

// stepRetired steps a retired machine; a nil event means Advance.
func (m *Machine) stepRetired(now mono.Instant, r *retired, e manager.Event) {
	var actions []manager.Action
	if e == nil {
		actions, r.wake = r.machine.Advance(now)
	} else {
		actions, r.wake = r.machine.Step(now, e)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case manager.Commit, manager.ReadEnd:
			m.emit(Manage{r.ns, m.term, a})
		case manager.Deposed:
			m.elect(now, byrecord.Deposed{By: a.By})
			return
		case manager.Broadcast: // the batch is committed; all other actions are dropped
			m.recordPast(r.ns, r.machine)
			m.retired = slices.DeleteFunc(m.retired, func(other *retired) bool { return other == r })
			if n := m.find(r.ns); n != nil && n.parked == nil {
				m.load(n)
			}
			return
		}
	}
}
