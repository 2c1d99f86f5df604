package managerproc

import (
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// beginCensus starts the census of a namespace's owners. A namespace that was created in this term
// needs none, since no owner has a lease in it: every granted lease had its namespace in the
// catalog, and an entry is removed only when all its leases have ended.
func (m *Machine) beginCensus(now mono.Instant, n *namespace) {
	census, err := manager.NewCensus(now, n.cfg, m.term, m.until)
	if n.fresh && err == nil {
		census.Conclude(now)
	}
	if err != nil {
		m.park(n, err)
		return
	}
	n.census, n.wake = census, now
}

// endCensus ends a census early. Another one continues with higher sequence numbers.
func (m *Machine) endCensus(n *namespace) {
	if n.census == nil {
		return
	}
	m.setPast(n.name(), past{seq: n.census.Seq(), lsn: m.past[n.name()].lsn})
	n.census = nil
}

// stepCensus steps a namespace's census; a nil event means Advance. At its end the collected table
// becomes the machine's table and the first snapshot of the term's log.
func (m *Machine) stepCensus(now mono.Instant, n *namespace, e manager.Event) {
	var actions []manager.Action
	if e == nil {
		actions, n.wake = n.census.Advance(now)
	} else {
		actions, n.wake = n.census.Step(now, e)
	}
	for _, a := range actions {
		m.emit(Manage{n.name(), m.term, a})
		if outranked, is := a.(manager.Outranked); is {
			m.elect(now, byrecord.Outranked{By: outranked.By})
			return
		}
	}
	if !n.census.Over() {
		return
	}
	machine, err := n.census.Lead(now)
	m.endCensus(n)
	if err != nil {
		m.park(n, err)
		return
	}
	m.emit(Manage{n.name(), m.term, manager.SaveSnapshot{Snapshot: &storage.Snapshot{
		Namespace: n.name(), Term: m.term, Table: machine.Frozen(),
	}}})
	m.lead(now, n, machine)
}
