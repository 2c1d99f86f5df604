package manager

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// planBatch computes a new assignment if the members have changed, and commits a batch with the grants that are
// possible.
func (m *Machine) planBatch(now mono.Instant) {
	if m.pending.stage != commitIdle {
		return // one batch at a time
	}
	if m.history.doubted() {
		m.rebase(now) // before anything else is written
		return
	}
	if m.cfg.Volatile && storage.Spent(m.lead.term, m.state.table.LSN(), m.state.table.Newest(), m.cfg.Log.BatchChanges) {
		m.emit(Spent{})
		return
	}
	if m.plan.churn.due(now) && !m.plan.replan {
		m.rebalance(now)
	}
	if m.plan.replan && now >= max(m.plan.replanAt, m.plan.gatherUntil) {
		m.redraw(now)
	}
	if m.plan.replan {
		m.wakeAt(max(m.plan.replanAt, m.plan.gatherUntil))
	}
	if now >= m.plan.rescanAt {
		m.plan.rescanAt = mono.Never
		m.plan.rescan = true
	}
	if !m.plan.rescan && len(m.freed.queue) == 0 {
		m.startMoves(now)
		m.compact(now)
		return
	}
	var grants []grant
	if m.plan.rescan {
		grants = m.scan()
	}
	changes := m.recordFreed(&grants)
	changes, rest := m.grantAll(changes, grants)
	m.plan.rescan = rest
	m.startMoves(now)
	if len(changes) > 0 {
		m.commit(now, &storage.Batch{Namespace: m.cfg.Namespace, Term: m.lead.term, Prev: m.state.table.LSN(), Changes: changes})
	}
}

// joined schedules a policy run. Servers often start together, and every plan moves ranges of all owners: so the
// run is delayed by Config.Gather while all keys have an owner. If some have none, for instance those of an expired
// owner, it runs at once, but not within a fraction of Config.Gather after the last run: a plan processes the whole
// table, and a thousand joins need not be a thousand plans.
func (m *Machine) joined(now mono.Instant) {
	alone := len(m.plan.current) == 0 || len(m.plan.current) == 1 && m.plan.current[0].Owner == ""
	switch {
	case m.plan.replan || alone:
	case slices.ContainsFunc(m.plan.current, func(s partition.Slot) bool { return s.Owner == "" }):
		m.plan.gatherUntil = m.plan.drawnAt.Add(m.cfg.Gather / unownedHaste)
	default:
		m.plan.gatherUntil = now.Add(m.cfg.Gather)
	}
	m.plan.replan, m.plan.occasion = true, table.Joined // planBatch schedules the wake-up
}

// unownedHaste divides Config.Gather while keys have no owner.
const unownedHaste = 16

// limits are the limits of an assignment. An owner may hold more leases than it has ranges in the plan, because
// adjacent leases can have different generations.
func (m *Machine) limits() partition.Limits {
	return partition.Limits{MaxRanges: m.cfg.Limits.Ranges, MaxPerOwner: max(1, m.cfg.Limits.Leases/2)}
}

// rebalance runs the policy after a change of loads. In most cases the result is unchanged.
func (m *Machine) rebalance(now mono.Instant) {
	m.plan.amend()
	in := m.input(now, drained)
	want, err := partition.Apply(m.cfg.Policy, in)
	switch {
	case err != nil:
		m.emit(Note{What: NotePolicyRefused, Err: err})
	case !slices.Equal(want, m.plan.current):
		m.plan.churn.spend(in, want)
		m.adopt(want, table.Load)
	}
}

// redraw runs the policy after a change of members.
func (m *Machine) redraw(now mono.Instant) {
	m.plan.replan, m.plan.drawnAt = false, now
	m.plan.gatherUntil = 0
	m.plan.amend()
	in := m.input(now, drained)
	if m.plan.churn.unlimited {
		m.plan.churn.unlimited, in.Budget = false, 1
	}
	want, err := partition.Apply(m.cfg.Policy, in)
	if err != nil {
		m.emit(Note{What: NotePolicyRefused, Err: err})
		want = m.currentAssignment()
		m.plan.replan = true
		m.plan.replanAt = now.Add(m.cfg.Timing.Renew)
		m.wakeAt(m.plan.replanAt)
	}
	m.plan.churn.spend(in, want)
	m.adopt(want, m.plan.occasion)
	m.plan.occasion = table.NoReason
}

// currentAssignment returns the current assignment, in which ranges of former members stay with their holders.
func (m *Machine) currentAssignment() partition.Assignment {
	var a partition.Assignment
	for r, pair := range keyrange.Zip(m.state.table.Entries(), m.plan.desired) {
		s := pair.B
		if s == nil || s.gone || !s.incumbent.member() {
			s = nil
			if p := m.members.holderOf(pair.A); p != nil && p.member() {
				s = p.seat
			}
		}
		owner := leasehold.OwnerID("")
		if s != nil {
			owner = s.owner
		}
		a = a.Append(r.Start, owner)
	}
	return a
}

// adopt makes an assignment the desired one.
func (m *Machine) adopt(want partition.Assignment, why table.Reason) {
	before := m.plan.desired
	m.plan.current = want
	byOwner := make(map[leasehold.OwnerID]*seat, len(m.members.seats))
	for _, s := range m.members.seats {
		if s.incumbent.member() {
			byOwner[s.owner] = s
		}
		s.incumbent.held.plain = false
	}
	var b keyrange.Builder[*seat]
	b.Grow(len(want))
	for _, slot := range want {
		b.Append(slot.Start, byOwner[slot.Owner])
	}
	m.plan.desired = b.Map()
	if m.plan.desired == nil {
		m.plan.desired = keyrange.NewMap[*seat](nil)
	}
	m.plan.recordReasons(before, why)
	m.preserveState()
	m.plan.rescan = true
	m.compaction.lsn = 0 // another plan may leave more adjacent leases
}

// reasonFor returns why a range moves away from the seat that was to have it before, given the reason for the plan.
func reasonFor(before *seat, why table.Reason) table.Reason {
	switch {
	case before == nil:
		return why
	case before.gone || before.incumbent == nil:
		return table.Gone
	case before.incumbent.exit.parting():
		return table.Leaving
	case before.incumbent.exit.draining:
		return table.Drain
	}
	return why
}

// A grant is a vacant range and the seat that gets it.
type grant struct {
	leasehold.Range
	to *seat
}

// scan compares the whole table with the plan, recalls or moves what differs, and returns the vacant ranges to
// grant.
func (m *Machine) scan() []grant {
	var grants []grant
	m.reviewMoves()
	m.members.clearBacklog()
	for r, pair := range keyrange.Zip(m.state.table.Entries(), m.plan.desired) {
		if pair.A.Vacant() {
			if pair.B != nil {
				grants = append(grants, grant{r, pair.B})
			}
			continue
		}
		p := m.members.sessions[pair.A.Holder.Session]
		switch {
		case p == nil || p.seat == pair.B:
		case !p.stays(pair.B):
			m.recall(p, leasehold.Lease{Range: r, Generation: pair.A.Generation})
		case pair.B != nil:
			m.plan.want(p, r, pair.B)
		}
	}
	m.markAllReady()
	return grants
}

// recall makes p release a lease, or a part of one. A lease that was never offered is free at once.
func (m *Machine) recall(p *peer, l leasehold.Lease) {
	_, moved := p.held.tickets[l.Generation]
	if first, fresh := p.held.fresh[l.Generation]; fresh && first == 0 && !moved {
		m.emit(Note{What: NoteWithdrawn, Owner: p.holder.Owner, Generation: l.Generation})
		whole := []leasehold.Lease{l}
		still := protocol.Missing(whole, protocol.Missing(whole, p.held.leases)) // a part may be free already
		for _, part := range still {
			m.freed.add(freed{Lease: part, holder: p.holder, cause: leasehold.CauseReleased})
		}
		p.held.drop(still)
		return
	}
	p.held.plain = false
	m.touch(p)
}

// recordFreed returns the changes that record ended leases, and adds the grants that replace them. The excess over
// one batch waits for the next.
func (m *Machine) recordFreed(grants *[]grant) (changes []table.Change) {
	m.pending.tickets = make(map[leasehold.Generation]protocol.Ticket)
	n := 0
	for n < len(m.freed.queue) && len(changes) < m.cfg.Log.BatchChanges/2 {
		f, first := m.freed.queue[n], n
		n++
		if m.members.arrives(&f) {
			for n < len(m.freed.queue) && m.freed.queue[n-1].joins(&m.freed.queue[n]) {
				n++
			}
			changes = append(changes, m.transfer(m.freed.queue[first:n], len(changes)))
			continue
		}
		changes = append(changes, table.Change{
			Kind: table.Vacated, Range: f.Range, Generation: f.Generation, Holder: f.holder, Cause: f.cause,
		})
		for r, s := range m.plan.desired.Within(f.Range) {
			if s != nil {
				*grants = append(*grants, grant{r, s})
			}
		}
	}
	m.pending.freed = slices.Clone(m.freed.queue[:n])
	if m.freed.queue = slices.Delete(m.freed.queue, 0, n); len(m.freed.queue) == 0 {
		m.freed.queue = emptied(m.freed.queue)
	}
	return changes
}

// newest is the newest generation. A volatile table uses only the numbers of its leader's term.
func (m *Machine) newest() leasehold.Generation {
	if m.cfg.Volatile {
		return m.state.table.Newest()
	}
	return max(m.state.table.Newest(), m.cfg.After)
}

// nextGeneration returns the generation of the next grant of a batch, given the number of grants and of changes
// before it. In a volatile table it is the LSN of the change: then the generation that an owner holds proves since
// when it does, though no table has recorded it (see table.Entry.LostSince). Both numbers begin with the term.
func (m *Machine) nextGeneration(grants, changes int) leasehold.Generation {
	if m.cfg.Volatile {
		return leasehold.Generation(m.state.table.LSN()) + leasehold.Generation(changes) + 1
	}
	return m.newest() + leasehold.Generation(grants) + 1
}

// grantAll assigns LSNs to the changes and adds the grants. Adjacent grants to one owner become one lease with one
// generation. It reports whether some have to wait.
func (m *Machine) grantAll(changes []table.Change, grants []grant) ([]table.Change, bool) {
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.Start, b.Start) })
	granted := len(m.pending.tickets)
	wait := false
	for i := 0; i < len(grants); {
		g := grants[i]
		for i++; i < len(grants) && grants[i].to == g.to && grants[i].Start == g.Limit; i++ {
			g.Limit = grants[i].Limit
		}
		if g.to.gone || !g.to.incumbent.member() {
			continue
		}
		if len(changes) >= m.cfg.Log.BatchChanges {
			wait = true
			break
		}
		_, reason := m.plan.reasons.At(g.Start)
		generation := m.nextGeneration(granted, len(changes))
		granted++
		changes = append(changes, table.Change{
			Kind: table.Granted, Range: g.Range, Generation: generation, Holder: g.to.incumbent.holder, Reason: reason,
		})
	}
	for i := range changes {
		changes[i].LSN = m.state.table.LSN() + leasehold.LSN(i) + 1
	}
	return changes, wait
}

// sendTouched sends a message to peers that must release leases or were granted some. A peer with a pending
// acknowledgement is skipped: the reply to that covers it.
func (m *Machine) sendTouched(now mono.Instant) {
	for _, p := range m.touched {
		if !p.acks.stale {
			continue // already sent
		}
		p.acks.stale = false
		alive := m.members.sessions[p.holder.Session] == p && p.acks.echo != 0 && p.member()
		if alive && !p.acks.unacked && m.plan.needsMessage(p) {
			m.sendLeases(now, p)
		}
	}
	m.touched = emptied(m.touched)
}
