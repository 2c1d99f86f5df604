package explore

import (
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// The checks are those of the simulator's oracle for managers and owners, as far as they are safety
// properties. They run in every state, so they can be shorter.

func (st *state) violated(i engine.Invariant, format string, args ...any) {
	if st.broken == nil {
		st.broken = &explorer.Violation{Invariant: i, Text: fmt.Sprintf(format, args...)}
	}
}

// checkExclusive is I1: no two owners' checks of a key succeed now.
func (st *state) checkExclusive() {
	a, b := st.procs[managers], st.procs[managers+1]
	if a == nil || b == nil {
		return
	}
	va, vb := a.owner.View(), b.owner.View()
	if st.clock(managers) >= va.Until || st.clock(managers+1) >= vb.Until {
		return
	}
	for _, la := range va.Leases {
		for _, lb := range vb.Leases {
			if la.Range.Overlaps(lb.Range) {
				st.violated(sim.I1Exclusive, "owner a has %v, and owner b has %v", la, lb)
			}
		}
	}
}

// checkLeaders is the basis of I1 across failovers: at most one manager has the authority to act.
func (st *state) checkLeaders() {
	if a, b := st.procs[0], st.procs[1]; a != nil && b != nil && a.node.Leads(st.clock(0)) && b.node.Leads(st.clock(1)) {
		st.violated(sim.OneLeader, "both managers act as leaders, in terms %d and %d", a.node.Term(), b.node.Term())
	}
}

// checkRequestedLeases checks that an owner's request has all leases that a check could still succeed on: the
// leader grants the others to other owners.
func (st *state) checkRequestedLeases(i int, v *owner.View, r *protocol.LeaseRequest) {
	if st.clock(i) >= v.Until {
		return
	}
	if missing := protocol.Missing(v.Leases, r.Leases); len(missing) > 0 {
		st.violated(sim.I1Exclusive, "the request of owner %s lacks %v, while its checks succeed", ownerNames[i-managers], missing[0])
	}
}

// checkGaps is I3: a lease that has ended does not come back. A suspended lease has not ended. It is resumed
// only while the store has it for this owner: then no other owner acted on it.
func (st *state) checkGaps(i int, p *process, from, to *owner.View) {
	for _, l := range protocol.Missing(to.Leases, from.Leases) {
		if slices.ContainsFunc(p.ended, func(e leasehold.Lease) bool { return e.Generation == l.Generation && e.Range.Overlaps(l.Range) }) {
			st.violated(sim.I3Held, "owner %s has %v again, which has ended", ownerNames[i-managers], l)
		}
	}
	if now := st.clock(i); now >= from.Until && now < to.Until {
		for _, l := range protocol.Missing(to.Leases, protocol.Missing(to.Leases, from.Leases)) {
			if st.store.ended(l) {
				st.violated(sim.I3Held, "owner %s resumes %v, which has ended in the store", ownerNames[i-managers], l)
			}
		}
	}
	p.ended = append(slices.Clip(p.ended), protocol.Missing(from.Leases, to.Leases)...)
}

// checkInstalls is I2 at the owners: a lease that an owner installs was committed for its session, and was
// not installed before.
func (st *state) checkInstalls(i int, p *process, leases []leasehold.Lease) {
	name := ownerNames[i-managers]
	for _, l := range leases {
		switch g := st.store.granted(l.Generation); {
		case g == nil:
			st.violated(sim.I2Generations, "owner %s installs %v, which was not committed", name, l)
		case g.Holder.Session != session(i, p.epoch):
			st.violated(sim.I2Generations, "owner %s installs %v, which was granted to session %s", name, l, g.Holder.Session.Short())
		case !g.Range.Covers(l.Range):
			st.violated(sim.I2Generations, "owner %s installs %v, of which only %v was granted", name, l, g.Range)
		case slices.Contains(p.installed, l.Generation):
			st.violated(sim.I2Generations, "owner %s installs %v for the second time", name, l)
		}
	}
	p.installed = slices.Clip(p.installed)
	for _, l := range leases {
		p.installed = append(p.installed, l.Generation)
	}
}

// checkTable is I5: a leader that has a table of an LSN has the committed table of that LSN.
func (st *state) checkTable(p *process) {
	m := p.node.Manager(namespace)
	if m == nil {
		return
	}
	t := m.Table()
	if n := int(t.LSN()); n >= len(st.store.tables) {
		st.violated(sim.I5Tables, "a leader is at lsn %d, which was not committed", n)
	} else if !sameTable(t, st.store.tables[n]) {
		st.violated(sim.I5Tables, "a leader has a table at lsn %d that differs from the committed one", n)
	}
}

func sameTable(a, b *table.Table) bool {
	if a.LSN() != b.LSN() || a.Newest() != b.Newest() || a.Len() != b.Len() {
		return false
	}
	for r, e := range a.All() {
		other, o := b.At(r.Start)
		if other != r || o.Generation != e.Generation || o.Lost != e.Lost || o.Vacant() != e.Vacant() || !e.Vacant() && o.Holder.Session != e.Holder.Session {
			return false
		}
	}
	return true
}
