package flease

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A wish is the goal of a bid.
type wish uint8

const (
	wishNone wish = iota
	wishTry
	wishHold
)

// A phase is the state of a bid.
type phase uint8

const (
	resting phase = iota // idle until the renewal, if it is held
	waiting              // for its timer, to begin again
	reading              // for promises
	writing              // for accepts
)

// A purpose is the reason for a write.
type purpose uint8

const (
	toHold    purpose = iota // our lease
	toRelease                // release of our lease
	toReport                 // another process's lease, which a majority must have
)

// A bid is the proposer's state for one resource: acquire it, keep it, release it.
type bid struct {
	cell   *cell
	tag    any // of the shell
	place  int // index in the machine's list
	wish   wish
	phase  phase
	at     mono.Instant // timer
	queued mono.Instant // time of its entry in alarms; Never if there is none

	round  round
	losses int  // consecutive rejected rounds
	insist bool // members that report another holder must promise anyway

	value   Value // being written
	purpose purpose
	decided Time // when it was chosen: a lease counts from then

	held  bool
	lease Lease

	awaited Value        // the lease whose end it waits for; empty if none
	awaits  mono.Instant // its end on our monotonic clock
}

const maxSends = 6 // transmissions of the same messages, for a try or a release

func (pr *proposer) newBid(c *cell) *bid {
	var b *bid
	if last := len(pr.spare) - 1; last >= 0 {
		b, pr.spare = pr.spare[last], pr.spare[:last]
	} else {
		b = new(bid)
	}
	members := len(c.group.members)
	*b = bid{
		cell: c, place: len(pr.bids), at: mono.Never, queued: mono.Never,
		round: round{refs: slices.Grow(b.round.refs[:0], members)[:members], seen: b.round.seen[:0]},
	}
	clear(b.round.refs)
	c.bid = b
	pr.bids = append(pr.bids, b)
	return b
}

// finish ends a bid. The struct is reused.
func (pr *proposer) finish(b *bid) {
	last := pr.bids[len(pr.bids)-1]
	pr.bids[b.place], last.place = last, b.place
	pr.bids[len(pr.bids)-1] = nil
	pr.bids = pr.bids[:len(pr.bids)-1]
	b.cell.bid, b.tag = nil, nil
	b.at, b.queued = mono.Never, mono.Never
	pr.spare = append(pr.spare, b)
}

// at sets the timer of a bid.
func (m *Machine) at(b *bid, at mono.Instant) {
	b.at = at
	m.queue(b)
}

func (m *Machine) queue(b *bid) {
	if b.at < b.queued {
		b.queued = b.at
		m.proposer.alarms.push(alarm{b.at, b}, m.soon())
		if len(m.proposer.alarms.later) > 2*len(m.proposer.bids)+maxStale {
			m.proposer.alarms.later.prune()
		}
	}
}

func (m *Machine) jitter(d time.Duration) time.Duration {
	return time.Duration(m.cfg.Rand.Int64N(int64(max(d, 1)))) + 1
}

// begin begins a round.
func (m *Machine) begin(now Time, b *bid) {
	b.awaited = Value{}
	if !m.admission.ready() {
		b.phase = waiting
		m.at(b, m.admission.joins(now))
		return
	}
	b.round.ballot = m.nextBallot(now, b.held)
	b.phase, b.round.sends = reading, 0
	b.round.promises, b.round.accepts, b.round.rejects, b.round.withheld = 0, 0, 0, false
	b.round.seen, b.round.fence = b.round.seen[:0], 0
	m.send(now, b)
}

// lead is by how much a holder's ballots exceed the known ones. A member that does not have the
// lease promises a round to every query. A holder renews less often than others query, so without
// the lead its ballot would always be lower at that member, which would never get the lease. The
// holder also adds epsilon to its clock, by which the clocks of others may be ahead.
const lead = 1 << 12

// nextBallot returns a ballot higher than all known ones, in the present interval or a later one.
func (m *Machine) nextBallot(now Time, held bool) Ballot {
	k := Ballot{Interval: m.cfg.interval(now.Wall), Round: 1, Process: m.cfg.Self}
	if held {
		k.Interval, k.Round = m.cfg.interval(now.Wall.Add(m.cfg.Epsilon)), k.Round+lead
	}
	switch {
	case k.Interval > m.proposer.top.Interval:
	case m.proposer.top.Round > math.MaxUint32-k.Round:
		k.Interval = m.proposer.top.Interval + 1
	default:
		k.Interval, k.Round = m.proposer.top.Interval, m.proposer.top.Round+k.Round
	}
	m.proposer.top = k
	return k
}

// send sends the messages of the phase to all members that have not replied.
func (m *Machine) send(now Time, b *bid) {
	b.round.sends++
	wait := max(m.cfg.Resend<<min(b.round.sends-1, 3), m.minWait())
	if b.held {
		wait = min(wait, m.remaining(now, b))
	}
	m.at(b, now.Mono.Add(wait))
	for i, p := range b.cell.group.peers {
		if p != nil {
			m.sendTo(b, i, p)
		}
	}
	if self := b.cell.group.self; b.needsMessage(self) || b.missedRound(self) {
		m.answerSelf(now, b, self)
	}
}

// needsMessage reports whether to send a message to a member.
func (b *bid) needsMessage(place int) bool {
	bit := uint64(1) << place
	switch b.phase {
	case reading:
		return (b.round.promises|b.round.rejects)&bit == 0
	case writing:
		return b.round.promises&^(b.round.accepts|b.round.rejects)&bit != 0
	case resting, waiting:
	}
	return false
}

func (m *Machine) sendTo(b *bid, place int, p *peer) {
	switch {
	case b.needsMessage(place):
		p.out = append(p.out, b.message(place))
	case b.missedRound(place):
		p.out = append(p.out, b.read())
	}
}

// missedRound reports whether a member has not received the round in which a lease is being renewed. If
// it promises late, it accepts the next renewal; otherwise it would not have the lease for its
// whole duration.
func (b *bid) missedRound(place int) bool {
	return b.phase == writing && b.held && (b.round.promises|b.round.rejects)&(1<<place) == 0
}

// message returns the message of the phase for a member.
func (b *bid) message(place int) Message {
	switch {
	case b.phase == writing:
	case b.insist:
		msg := b.read()
		msg.Kind = KindInsist
		return msg
	default:
		return b.read()
	}
	return b.write(place)
}

func (b *bid) write(place int) Message {
	return Message{Kind: KindWrite, To: b.round.refs[place], From: b.cell.ref, Name: b.cell.name, Ballot: b.round.ballot, Value: b.value}
}

func (b *bid) read() Message {
	return Message{Kind: KindRead, Name: b.cell.name, From: b.cell.ref, Ballot: b.round.ballot}
}

// answerSelf handles the message to our own acceptor.
func (m *Machine) answerSelf(now Time, b *bid, self int) {
	msg := b.message(self)
	if b.missedRound(self) {
		msg = b.read()
	}
	if msg.Kind != KindWrite {
		answer := m.read(now, b.cell, &msg, m.cfg.Incarnation)
		m.answer(now, b, self, &answer)
		return
	}
	if answer, ok := m.store(now, b.cell, &msg, m.cfg.Incarnation); ok {
		m.answer(now, b, self, &answer)
	}
}

// answer handles an acceptor's reply in the present round. Each acceptor is counted once.
func (m *Machine) answer(now Time, b *bid, place int, msg *Message) {
	bit := uint64(1) << place
	switch {
	case msg.Kind == KindReject:
		m.rejected(now, b, bit, msg.Written)
	case msg.Kind == KindHeld && b.phase == reading && (b.round.promises|b.round.rejects)&bit == 0:
		m.handleHeld(now, b, bit, msg)
	case msg.Kind == KindPromise && b.phase == reading && (b.round.promises|b.round.rejects)&bit == 0:
		b.round.promises |= bit
		b.round.refs[place] = msg.From
		b.round.consider(msg, bit)
		if bits.OnesCount64(b.round.promises) >= b.cell.group.majority {
			m.decide(now, b)
		}
	case (msg.Kind == KindPromise || msg.Kind == KindHeld) && (b.phase == writing || b.phase == resting) && (b.round.promises|b.round.rejects)&bit == 0:
		m.handleLate(now, b, place, msg)
	case msg.Kind == KindAccept && b.phase == writing && msg.Value.Serial == b.value.Serial && b.round.promises&^b.round.accepts&bit != 0:
		b.round.accepts |= bit
		if bits.OnesCount64(b.round.accepts) >= b.cell.group.majority {
			m.committed(now, b)
		}
	}
}

// A sighting is a value that acceptors have reported, and the latest round in which it was written.
type sighting struct {
	Value
	at    Ballot
	by    uint64 // members that have the same tenure, possibly with an earlier end
	until Wall   // earliest reported end
}

// handleHeld handles the report of a holder in place of a promise. If a majority has that tenure, a
// release ends, a try is refused, and an acquire waits.
func (m *Machine) handleHeld(now Time, b *bid, bit uint64, msg *Message) {
	b.round.rejects |= bit
	b.round.withheld = true
	m.proposer.top = later(m.proposer.top, msg.Written)
	s := b.round.consider(msg, bit)
	switch {
	case s == nil || b.held || !b.known(s):
		m.retryIfHopeless(now, b)
	case b.wish == wishNone:
		m.endUnclaimed(b)
	case b.wish == wishHold:
		m.await(now, b, &s.Value)
	default:
		m.refused(b, s)
	}
}

// known reports whether a majority has a tenure.
func (b *bid) known(s *sighting) bool {
	return bits.OnesCount64(s.by) >= b.cell.group.majority
}

// refused ends a try for a lease of another process. The reported end is the earliest of the
// majority.
func (m *Machine) refused(b *bid, s *sighting) {
	m.noticeBid(b, Notice{What: Refused, Holder: s.Owner, Fence: s.Fence, Until: s.until})
	m.proposer.finish(b)
}

// handleLate handles a reply that arrives after the value was chosen. If the member then cannot accept
// renewals, the next renewal takes a whole round.
func (m *Machine) handleLate(now Time, b *bid, place int, msg *Message) {
	bit := uint64(1) << place
	switch p := b.cell.group.peers[place]; {
	case msg.Kind == KindHeld || !m.compatible(now, b, msg):
		if b.held {
			b.round.rejects |= bit
		}
	default:
		b.round.promises |= bit
		b.round.refs[place] = msg.From
		m.catchUp(now, b, place, p)
	}
}

// catchUp sends the write to a member whose promise was late. If we already have the lease, the
// accept is not counted, but the member needs the lease: otherwise it would promise other rounds to
// all queries until the next renewal.
func (m *Machine) catchUp(now Time, b *bid, place int, p *peer) {
	switch {
	case b.phase == writing && p == nil:
		m.answerSelf(now, b, place)
	case b.phase == writing:
		m.sendTo(b, place, p)
	case p != nil:
		msg := b.write(place)
		msg.Value.Left = max(0, b.lease.Until.Mono.Sub(now.Mono))
		p.out = append(p.out, msg)
	}
}

// compatible reports whether a late reply would not have changed the chosen value: then the member may
// accept it too. Its fence does not matter: fences of committed leases were reported by the
// majority that replied before.
func (m *Machine) compatible(now Time, b *bid, msg *Message) bool {
	v := &msg.Value
	if v.sameOwner(&b.value) {
		return v.Serial <= b.value.Serial
	}
	return !m.binds(now, v) || slices.ContainsFunc(b.round.seen, func(s sighting) bool { return s.sameOwner(v) && s.Serial > v.Serial })
}

// rejected counts members that have promised a later round. If too few are left, another round is
// needed.
func (m *Machine) rejected(now Time, b *bid, bit uint64, by Ballot) {
	if b.phase == waiting {
		return
	}
	b.round.rejects |= bit
	m.proposer.top = later(m.proposer.top, by)
	if b.phase != resting { // if resting, the write was committed anyway
		m.retryIfHopeless(now, b)
	}
}

// retryIfHopeless begins another round if neither a majority can promise or accept this one, nor a
// majority can agree on the holder.
func (m *Machine) retryIfHopeless(now Time, b *bid) {
	quiet := len(b.cell.group.members) - bits.OnesCount64(b.round.promises|b.round.rejects)
	left := quiet + bits.OnesCount64(b.round.promises&^b.round.rejects)
	if b.phase == writing {
		left = bits.OnesCount64(b.round.promises&^b.round.rejects | b.round.accepts)
	}
	if left >= b.cell.group.majority || b.phase == reading && quiet+b.round.agreed() >= b.cell.group.majority {
		return
	}
	m.retry(now, b)
}

// retry begins another round, the first time at once, with what the rejections reported about
// ballots and the holder. A try or a release ends after a number of rounds.
func (m *Machine) retry(now Time, b *bid) {
	if b.losses++; b.losses > maxSends && m.exhausted(b, Disputed) {
		return
	}
	b.insist = b.insist || b.round.withheld
	if b.losses == 1 {
		m.begin(now, b)
		return
	}
	b.phase = waiting
	wait := m.jitter(m.cfg.Backoff << min(b.losses-2, 5))
	if b.held {
		wait = min(wait, m.remaining(now, b))
	}
	m.at(b, now.Mono.Add(wait))
}

// exhausted ends a bid after its last attempt if it is a try or a release, and reports whether it
// is.
func (m *Machine) exhausted(b *bid, why Notable) bool {
	if b.held || b.wish == wishHold {
		return false
	}
	m.noticeBid(b, Notice{What: why})
	m.proposer.finish(b)
	return true
}

// memberRestarted handles the restart of a member: its promises are void, and its messages are sent again.
func (m *Machine) memberRestarted(now Time, b *bid, p *peer) {
	place := b.cell.group.index(p.id)
	if place < 0 {
		return
	}
	bit := uint64(1) << place
	b.round.promises &^= bit
	b.round.accepts &^= bit
	b.round.rejects &^= bit
	if b.phase == writing && bits.OnesCount64(b.round.promises) < b.cell.group.majority {
		m.begin(now, b)
		return
	}
	m.sendTo(b, place, p)
}

// dropAll ends all leases and all rounds: their clock is wrong.
func (m *Machine) dropAll(now Time) {
	for _, b := range slices.Clone(m.proposer.bids) {
		if b.held {
			m.lost(b)
			continue
		}
		if b.phase == reading || b.phase == writing {
			b.phase = waiting
			m.at(b, now.Mono.Add(m.jitter(m.cfg.Backoff)))
		}
	}
}
