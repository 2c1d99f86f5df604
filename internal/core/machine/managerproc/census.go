package managerproc

import (
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// beginCensus asks the owners of a namespace what they have. If it was not there when
// we took over, nobody has anything: who granted something had it in the catalog, and
// it is taken out of that only when nobody has anything any more.
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

// dismissCensus ends a census before it is over. Another will ask again, with
// higher numbers.
func (m *Machine) dismissCensus(n *namespace) {
	if n.census == nil {
		return
	}
	m.setPast(n.name(), past{seq: n.census.Seq(), lsn: m.past[n.name()].lsn})
	n.census = nil
}

// survey steps a namespace's census; a nil event is the passing of time. When it
// is over, what it has found is what we lead by, and what the store has.
func (m *Machine) survey(now mono.Instant, n *namespace, e manager.Event) {
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
	m.dismissCensus(n)
	if err != nil {
		m.park(n, err)
		return
	}
	m.emit(Manage{n.name(), m.term, manager.SaveSnapshot{Snapshot: &storage.Snapshot{
		Namespace: n.name(), Term: m.term, Table: machine.Frozen(),
	}}})
	m.lead(now, n, machine)
}
