package managerproc

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A machine may end before its term does: its namespace is deleted, or is
// given a configuration that makes no sense. The namespace may come back in
// the same term, with a machine that knows nothing of the first one's last
// batch; and the store's guard, which is the term, does not tell the two apart.
// So a machine with a batch under way lives on until the store has the batch,
// and only then is the table read again.

// past is what a namespace's machines of this term have done.
type past struct {
	seq protocol.Seq  // the newest message: the owners have heard it
	lsn leasehold.LSN // where the table was when the last one ended
}

// retired is a machine that speaks to nobody but the store.
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
	m.dismissCensus(n)
	if n.machine == nil {
		return
	}
	if n.committing {
		m.retired = append(m.retired, &retired{n.name(), n.machine, n.wake})
	}
	m.remember(n.name(), n.machine)
	n.machine, n.committing = nil, false
}

func (m *Machine) remember(ns leasehold.Namespace, machine *manager.Machine) {
	m.setPast(ns, past{machine.Seq(), machine.Table().LSN()})
}

func (m *Machine) setPast(ns leasehold.Namespace, p past) {
	if m.past == nil {
		m.past = map[leasehold.Namespace]past{}
	}
	m.past[ns] = p
}

// conclude steps a retired machine; a nil event is the passing of time.
func (m *Machine) conclude(now mono.Instant, r *retired, e manager.Event) {
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
		case manager.Broadcast: // the store has its batch; what else it wants is not to be
			m.remember(r.ns, r.machine)
			m.retired = slices.DeleteFunc(m.retired, func(other *retired) bool { return other == r })
			if n := m.find(r.ns); n != nil && n.parked == nil {
				m.load(n)
			}
			return
		}
	}
}
