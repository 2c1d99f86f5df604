package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// By how much an owner's term may be ahead of ours and still be believed. Terms of a
// store rise one by one, or by the seconds for which it may have forgotten some: an owner
// that is centuries ahead is broken, and must not use them up. Where there is no store they are milliseconds, and an owner is ahead if our
// wall clocks were set back; more than a day or so is not believed.
const (
	maxTermJump         = 1 << 33
	maxVolatileTermJump = 1 << 27
)

func (c *Config) termJump() leasehold.Term {
	if c.Volatile {
		return maxVolatileTermJump
	}
	return maxTermJump
}

// request handles an owner's message: first whether it counts, then what it
// says, then the answer.
func (m *Machine) request(now mono.Instant, r *protocol.LeaseRequest) {
	switch {
	case r.Validate(m.cfg.Limits) != nil:
		m.note(NoteBadMessage, "", uint64(r.Term), uint64(r.Seq))
		return
	case r.Namespace != m.cfg.Namespace:
		m.note(NoteForeign, r.Holder.Owner, 0, 0)
		return
	case r.Term > m.term+m.cfg.termJump():
		m.note(NoteBadMessage, r.Holder.Owner, uint64(r.Term), uint64(m.term))
		return
	case r.Term > m.term:
		m.emit(Outranked{r.Term}) // only the store can say whether it is so
		return
	case r.Term == m.term && r.Heard > m.seq:
		// It was not us who said that: the store has forgotten who led in this term before, and no
		// other is to lead in it.
		m.emit(Outranked{m.term + 1})
		return
	case !m.leads(now):
		m.note(NoteNoAuthority, r.Holder.Owner, uint64(now), uint64(m.authority))
		return
	case m.anothers(r.Holder):
		m.note(NoteForeign, r.Holder.Owner, 0, 0)
		return
	case m.unmarked:
		return // what it has may be all that shows that the store was restored
	case m.duplicated(now, r):
		return
	case r.Leaving:
		m.goodbye(now, r)
		return
	case m.sessions[r.Holder.Session] == nil && m.ending(r.Holder.Session):
		return // its leases have ended, which is not committed yet: the answer would reveal it
	}
	m.endOutage(now, r.Holder.Session)
	if first := m.firstInLine(r.Holder); first != nil && !m.overtakes(r, first) {
		reply := m.reply(now, r.Holder.Session, r.Seq)
		reply.Incumbent = first.holder
		m.emit(Send{r.Holder.Owner, reply})
		return
	}
	p, refusal := m.session(now, r.Holder)
	if p == nil {
		m.refuse(now, r, refusal)
		return
	}
	if m.accept(now, p, r) {
		m.seatGhost(p)
		m.hear(now, p, r)
		p.heard, p.load, p.suspended, p.due = now, r.Load, r.Suspended, 0
		p.until = max(p.until, now.Add(m.patience(p)))
		m.wakeAt(p.until)
		m.resume(p)
		if p.deferred = m.defers(now, p); !p.deferred && !m.unmarked {
			m.tell(now, p)
		}
	}
}

// anothers reports whether a session is known to be that of another owner. Whoever looks
// things up learns the sessions of all, and could speak for any of them otherwise.
func (m *Machine) anothers(h *table.Holder) bool {
	p := m.sessions[h.Session]
	return p != nil && p.holder.Owner != h.Owner
}

// firstInLine returns who waits already for the name of a session that we do
// not know; nil if nobody does. One at a time waits, for as long as it speaks.
func (m *Machine) firstInLine(h *table.Holder) *peer {
	i, known := m.findSeat(h.Owner)
	if !known || m.sessions[h.Session] != nil {
		return nil
	}
	return m.seats[i].contender
}

// overtakes reports whether a request proves that whoever waits is gone, and
// forgets that one. If it has leases, they must be waited for.
func (m *Machine) overtakes(r *protocol.LeaseRequest, first *peer) bool {
	if r.Gone != first.holder.Session || len(first.leases) > 0 {
		return false
	}
	m.forget(first)
	return true
}

// session returns the peer of a holder, making one if there is none, or why
// there can be none.
func (m *Machine) session(now mono.Instant, h *table.Holder) (*peer, leasehold.Kind) {
	if p := m.sessions[h.Session]; p != nil {
		return p, leasehold.Other
	}
	if m.heard >= m.cfg.MaxOwners && !m.makeRoom(now) {
		m.note(NoteFull, h.Owner, uint64(m.heard), 0)
		return nil, leasehold.ErrLimit
	}
	p := &peer{holder: h, seat: m.seat(h.Owner), resendAt: mono.Never}
	m.sessions[h.Session] = p
	if p.seat.incumbent == nil {
		p.seat.incumbent = p
		m.note(NoteHello, h.Owner, 0, 0)
		return p, leasehold.Other
	}
	p.seat.contender = p
	m.note(NoteNameTaken, h.Owner, 0, 0)
	return p, leasehold.Other
}

// seatGhost gives a ghost that turns out to live a place: its name, if nobody
// has it any more, or the place of one who waits for it.
func (m *Machine) seatGhost(p *peer) {
	if p.seat != nil {
		return
	}
	s := m.seat(p.holder.Owner)
	switch {
	case s.incumbent == nil:
		s.incumbent = p
		m.replan = true
	case s.contender == nil:
		s.contender = p
	default:
		return
	}
	p.seat = s
}

// accept applies the protocol's filter. The first request of a session in our
// term is always accepted, because there is nothing of ours to reflect; but it
// proves nothing either (see hear).
func (m *Machine) accept(now mono.Instant, p *peer, r *protocol.LeaseRequest) bool {
	if r.Seq <= p.echo {
		m.note(NoteDuplicate, p.holder.Owner, uint64(r.Seq), uint64(p.echo))
		return false
	}
	if p.sent != 0 && (r.Term != m.term || r.Heard != p.sent) {
		m.note(NoteRace, p.holder.Owner, uint64(r.Heard), uint64(p.sent))
		p.resendAt = min(p.resendAt, now.Add(m.backoff()))
		m.wakeAt(p.resendAt)
		return false
	}
	if p.echo == 0 {
		m.heard++
	}
	p.echo = r.Seq
	p.resendAt = mono.Never
	return true
}

// patience is how long a peer that has just spoken may be silent. One that
// waits for its name, or has not proved that it hears us, has been given
// nothing. It must not block the name for long: it may be gone, or its hello may
// be a late message of a session that was gone long ago.
func (m *Machine) patience(p *peer) time.Duration {
	waits := p.seat != nil && p.seat.contender == p && len(p.leases) == 0
	if p.proven && !waits {
		return m.cfg.Timing.Hold()
	}
	return m.cfg.Timing.Drift.Stretch(2 * m.cfg.Timing.Renew)
}

// hear takes in what an accepted request says.
func (m *Machine) hear(now mono.Instant, p *peer, r *protocol.LeaseRequest) {
	if p.sent == 0 { // whatever it has or resumes later is from us
		p.resumedUpTo = r.Resumed
		m.remind(now, r)
	}
	p.claims = r.Leases
	m.learn(now, p, r)
	if s := p.seat; s != nil && s.contender == p && !r.Gone.IsZero() && r.Gone == s.incumbent.holder.Session {
		m.note(NotePredecessor, s.owner, uint64(len(s.incumbent.leases)), 0)
		m.remove(s.incumbent, leasehold.CauseRestarted)
	}
	if p.sent == 0 {
		if n := len(p.leases); n > 0 && p.heard == 0 && !(r.Suspended && m.undecided()) {
			m.note(NoteTakeoverRenews, p.holder.Owner, uint64(n), 0)
		}
		// It has not heard us. What it lacks, a message of our predecessor that
		// is still under way may yet give it.
		return
	}
	p.unacked = false
	p.valid = p.valid || !r.Suspended
	if !p.proven {
		p.proven = true
		if p.seat != nil && p.seat.contender == p {
			m.wake = now // whoever has the name may be overdue
		}
		if p.member() {
			m.note(NoteJoined, p.holder.Owner, 0, 0)
			m.compareMovers(p)
			m.joined(now)
		}
	}
	p.heardEnds(r.Applied)
	m.reported(now, p, r.Moves)
	if p.answered = true; m.undecided() {
		return
	}
	p.settled = true
	m.settle(now, p, r)
	m.getReady(p)
}

// learn takes in what a peer says about itself.
func (m *Machine) learn(now mono.Instant, p *peer, r *protocol.LeaseRequest) {
	first := p.sent == 0
	p.identity = r.Identity
	if p.mover != r.Mover {
		p.mover, p.plain = r.Mover, false
		// What was to be recalled may be moved, or the other way round.
		m.rescan = m.rescan || !first || !m.keepsAllAsPlanned(p)
	}
	if first && r.Mover == "" && len(p.blocked) > 0 {
		m.rescan = true // it was taken for one that moves state
	}
	if first {
		m.unblock(p)
	}
	p.reports, p.imports = r.Moves, r.Imports
	if r.Loads != nil && partition.UsesLoads(m.cfg.Policy) {
		p.loads = r.Loads
		m.churn.heard(now, m.cfg.Rebalance)
		m.wakeAt(m.churn.next)
	}
	if first && r.Draining && !p.draining { // our predecessor has asked for it
		p.draining = true
		m.retire(p)
	}
	if r.Parting && !p.parting {
		p.parting = true
		m.parting = append(m.parting, p)
		m.note(NoteParting, p.holder.Owner, uint64(len(p.leases)), 0)
		m.retire(p)
	}
}

// retire plans anew without a peer, or with it again.
func (m *Machine) retire(p *peer) {
	m.ordered(p)
	if p.member() {
		m.lostMember(because(p.seat, table.Joined))
	}
}

// settle compares what the peer should have with what it says it has: it
// confirms grants and takes back what the peer does not have.
func (m *Machine) settle(now mono.Instant, p *peer, r *protocol.LeaseRequest) {
	gone := protocol.Missing(p.leases, r.Leases)
	if len(gone) == 0 && len(p.fresh) == 0 {
		return
	}
	var given []freed
	pending := map[leasehold.Generation]protocol.Seq{}
	for _, l := range gone {
		first, fresh := p.fresh[l.Generation]
		neverHad := fresh && (first == 0 || first > r.Applied)
		_, moved := p.tickets[l.Generation]
		if ticket, here := m.arrived(p, l, r.Imports); here && !fresh && (!m.proven || l.Generation > m.found.generation) {
			p.expect(l.Generation, ticket)
			pending[l.Generation] = 0
			m.note(NoteGrantPending, p.holder.Owner, uint64(l.Generation), 0)
			continue
		}
		for part, s := range m.desired.Within(l.Range) {
			if neverHad && (s == p.seat || moved) {
				m.note(NoteGrantPending, p.holder.Owner, uint64(l.Generation), 0)
				pending[l.Generation] = first
				continue
			}
			lease := leasehold.Lease{Range: part, Generation: l.Generation}
			given = append(given, freed{Lease: lease, holder: p.holder, cause: m.whyGiven(p, lease, s)})
		}
	}
	m.confirm(p, pending)
	p.drop(leasesOf(given))
	m.pruneMoves(p)
	m.release(now, p, given, m.credible(p, r.Moves))
}

// confirm remembers which grants are still not confirmed. What had to be given
// to a peer because its state was there may now be moved on.
func (m *Machine) confirm(p *peer, pending map[leasehold.Generation]protocol.Seq) {
	if len(pending) == 0 && len(p.fresh) > 0 {
		m.mendAt = 0 // what it has may be joined now
	}
	p.fresh = pending
	m.receivedBy(p, pending)
	for g := range p.tickets {
		if _, still := pending[g]; !still {
			delete(p.tickets, g)
			p.plain = false
			m.rescan = m.rescan || !m.planned(p, g)
		}
	}
}

// planned reports whether the plan has for p what it holds under a generation.
func (m *Machine) planned(p *peer, g leasehold.Generation) bool {
	for _, l := range p.leases {
		if l.Generation == g && !m.plannedFor(p, l.Range) {
			return false
		}
	}
	return true
}

// keepsAllAsPlanned reports whether the plan has for p all that it has.
func (m *Machine) keepsAllAsPlanned(p *peer) bool {
	return !slices.ContainsFunc(p.leases, func(l leasehold.Lease) bool { return !m.plannedFor(p, l.Range) })
}

// plannedFor reports whether the plan has all of a range for p.
func (m *Machine) plannedFor(p *peer, r leasehold.Range) bool {
	for _, s := range m.desired.Within(r) {
		if s != p.seat {
			return false
		}
	}
	return true
}

func leasesOf(all []freed) []leasehold.Lease {
	out := make([]leasehold.Lease, len(all))
	for i := range all {
		out[i] = all[i].Lease
	}
	return out
}

// whyGiven tells a lease that came back because we asked from one that the
// holder did not know.
func (m *Machine) whyGiven(p *peer, l leasehold.Lease, wanted *seat) leasehold.Cause {
	if wanted != p.seat || p.recalled[l] {
		return leasehold.CauseReleased
	}
	return leasehold.CauseRefused
}

// goodbye ends a session that will never again take a lease, whatever message
// it may yet receive: so it need not reflect what we said last.
func (m *Machine) goodbye(now mono.Instant, r *protocol.LeaseRequest) {
	if p := m.sessions[r.Holder.Session]; p != nil {
		m.note(NoteLeft, r.Holder.Owner, uint64(len(p.leases)), 0)
		m.bequeath(now, p, m.credible(p, r.Moves), leasehold.CauseLeft)
		m.remove(p, leasehold.CauseLeft)
	}
	if len(m.goodbyes) < m.cfg.MaxOwners {
		m.goodbyes = append(m.goodbyes, goodbye{r.Holder.Owner, r.Holder.Session, r.Seq, m.everFreed})
	}
}

// bequeath lets go of what a peer has handed over, as a whole.
func (m *Machine) bequeath(now mono.Instant, p *peer, reports []protocol.MoveReport, cause leasehold.Cause) {
	for _, rep := range reports {
		if rep.State != protocol.MoveDone {
			continue
		}
		var given []freed
		for _, l := range p.leases {
			if part, ok := l.Range.Intersect(rep.Range); ok {
				given = append(given, freed{Lease: leasehold.Lease{Range: part, Generation: l.Generation}, holder: p.holder, cause: cause})
			}
		}
		p.drop(leasesOf(given))
		m.release(now, p, given, reports)
	}
}

// A goodbye is owed to a session that has left. It is said when the table says
// that the session has nothing: were we to die before that, a successor would
// wait for leases that nobody holds.
type goodbye struct {
	owner   leasehold.OwnerID
	session leasehold.Session
	echo    protocol.Seq
	due     uint64 // when so many leases are recorded as ended
}

func (m *Machine) sayGoodbyes(now mono.Instant) {
	n := 0
	for ; n < len(m.goodbyes) && m.goodbyes[n].due <= m.recorded && !m.detained(m.goodbyes[n].session); n++ {
		reply := m.reply(now, m.goodbyes[n].session, m.goodbyes[n].echo)
		reply.Goodbye = true
		m.emit(Send{m.goodbyes[n].owner, reply})
	}
	if m.goodbyes = slices.Delete(m.goodbyes, 0, n); len(m.goodbyes) == 0 {
		m.goodbyes = nil
	}
}

// refuse answers an owner that cannot be served. Nothing of it is remembered.
func (m *Machine) refuse(now mono.Instant, r *protocol.LeaseRequest, why leasehold.Kind) {
	reply := m.reply(now, r.Holder.Session, r.Seq)
	reply.Refusal = why
	m.emit(Send{r.Holder.Owner, reply})
}

// reply starts a message to a session.
func (m *Machine) reply(now mono.Instant, s leasehold.Session, echo protocol.Seq) *protocol.LeaseReply {
	m.seq++
	return &protocol.LeaseReply{
		Namespace: m.cfg.Namespace, Session: s, Leader: m.cfg.Self, Term: m.term,
		Seq: m.seq, Echo: echo, Timing: m.cfg.Timing, Clock: now,
	}
}

// tell sends a peer the complete set of leases that it is to have.
func (m *Machine) tell(now mono.Instant, p *peer) {
	if p.deferred {
		return
	}
	reply := m.reply(now, p.holder.Session, p.echo)
	p.sent = m.seq
	p.stale = false
	s := p.seat
	switch {
	case s == nil || s.incumbent != p:
		if s != nil {
			reply.Incumbent = s.incumbent.holder
		}
	default:
		if s.contender != nil {
			reply.Contender = s.contender.holder
		}
		reply.Offers = m.offersTo(p)
		reply.Departures, reply.Arrivals = p.departures(), p.arrivals()
		p.idleSaid = m.idle(now, p)
		reply.Draining, reply.Idle = p.draining, p.idleSaid
		p.unacked = p.unacked || !m.keepsAsIs(p)
		p.orders = false
		m.toldEnds(p)
	}
	for _, o := range reply.Offers {
		if first, fresh := p.fresh[o.Generation]; fresh && first == 0 {
			p.fresh[o.Generation] = m.seq
		}
	}
	m.emit(Send{p.holder.Owner, reply})
}

// offersTo returns the peer's leases as far as the plan leaves them to it.
func (m *Machine) offersTo(p *peer) []protocol.Offer {
	if len(p.leases) == 0 {
		return nil
	}
	offers := make([]protocol.Offer, 0, len(p.leases))
	if m.undecided() {
		for _, l := range protocol.Missing(p.leases, protocol.Missing(p.leases, p.claims)) {
			offers = append(offers, protocol.Offer{Lease: l}) // what it lacks is not for now
		}
		return offers
	}
	if m.keepsAsIs(p) {
		for _, l := range p.leases {
			offers = append(offers, protocol.Offer{Lease: l})
		}
		return offers
	}
	for _, l := range p.leases {
		_, fresh := p.fresh[l.Generation]
		ticket, moved := p.tickets[l.Generation]
		if p.suspended && !fresh && !moved && !m.proven {
			offers = append(offers, protocol.Offer{Lease: l}) // it is resumed first, and recalled after that
			continue
		}
		if p.recalled[l] {
			continue
		}
		if moved {
			// Its state is there: it is given all of it, whatever the plan is now.
			offers = append(offers, protocol.Offer{Lease: l, Fresh: true, Ticket: ticket})
			continue
		}
		from := len(offers)
		for r, s := range m.desired.Within(l.Range) {
			if !m.stays(p, s) {
				continue
			}
			if n := len(offers); n > from && offers[n-1].Range.Limit == r.Start {
				offers[n-1].Range.Limit = r.Limit
				continue
			}
			offers = append(offers, protocol.Offer{Lease: leasehold.Lease{Range: r, Generation: l.Generation}, Fresh: fresh})
		}
	}
	return offers
}
