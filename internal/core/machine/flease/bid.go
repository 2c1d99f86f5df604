package flease

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A wish is what a bid is for.
type wish uint8

const (
	wishNone wish = iota
	wishTry
	wishHold
)

// A phase is what a bid waits for.
type phase uint8

const (
	resting phase = iota // nothing to be done, if it is held, before it is renewed
	waiting              // a time at which to begin again
	reading              // promises
	writing              // accepts
)

// A purpose is what a value is written for.
type purpose uint8

const (
	toHold    purpose = iota // it is ours
	toRelease                // it was ours
	toTell                   // it is someone else's, and a majority must know
)

// A bid is what a proposer does for one resource: get it, keep it, release it.
type bid struct {
	cell   *cell
	tag    any // the shell's
	place  int // in the machine's list
	wish   wish
	phase  phase
	at     mono.Instant // when to look at it again
	queued mono.Instant // when the heap will bring it up; Never if it will not

	round  round
	losses int  // rounds that were rejected, one after the other
	insist bool // those who say that another has the lease are to promise all the same

	value   Value // that is being written
	purpose purpose
	decided Time // when it was decided: a lease counts from there

	held  bool
	lease Lease

	awaited Value        // whose end it waits for; nobody's if it does not
	awaits  mono.Instant // when that is over, on our clock
}

const maxSends = 6 // of the same messages, for a try or a release

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

// finish ends a bid. It will be used again, as another.
func (pr *proposer) finish(b *bid) {
	last := pr.bids[len(pr.bids)-1]
	pr.bids[b.place], last.place = last, b.place
	pr.bids[len(pr.bids)-1] = nil
	pr.bids = pr.bids[:len(pr.bids)-1]
	b.cell.bid, b.tag = nil, nil
	b.at, b.queued = mono.Never, mono.Never
	pr.spare = append(pr.spare, b)
}

// at sets when a bid is looked at again.
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

// lead is by how much the holder of a lease exceeds the rounds that it knows of.
// Those who ask a member that knows of no lease get its promise every time; so the
// holder, which renews less often than they ask, would never be the later one
// there, and the member would never hear of the lease. Its clock counts for as
// much as theirs may be ahead.
const lead = 1 << 12

// nextBallot returns one that is higher than all we know of, in the interval of
// the present time or a later one.
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

// send sends what the phase calls for to all who have not answered.
func (m *Machine) send(now Time, b *bid) {
	b.round.sends++
	wait := max(m.cfg.Resend<<min(b.round.sends-1, 3), m.patience())
	if b.held {
		wait = min(wait, m.remaining(now, b))
	}
	m.at(b, now.Mono.Add(wait))
	for i, p := range b.cell.group.peers {
		if p != nil {
			m.sendTo(b, i, p)
		}
	}
	if self := b.cell.group.self; b.asks(self) || b.missed(self) {
		m.answerSelf(now, b, self)
	}
}

// asks reports whether the member at a place is to be sent a message.
func (b *bid) asks(place int) bool {
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
	case b.asks(place):
		p.out = append(p.out, b.message(place))
	case b.missed(place):
		p.out = append(p.out, b.read())
	}
}

// missed reports whether a member has not heard of the round that a lease is being
// renewed in. If it promises it late, it accepts the next renewal; otherwise it
// would know nothing of the lease for as long as that lasts.
func (b *bid) missed(place int) bool {
	return b.phase == writing && b.held && (b.round.promises|b.round.rejects)&(1<<place) == 0
}

// message is what the phase calls for, for the member at a place.
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

// answerSelf is our own acceptor's answer.
func (m *Machine) answerSelf(now Time, b *bid, self int) {
	msg := b.message(self)
	if b.missed(self) {
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

// answer handles what an acceptor says about the present round. Each is counted
// once.
func (m *Machine) answer(now Time, b *bid, place int, msg *Message) {
	bit := uint64(1) << place
	switch {
	case msg.Kind == KindReject:
		m.rejected(now, b, bit, msg.Written)
	case msg.Kind == KindHeld && b.phase == reading && (b.round.promises|b.round.rejects)&bit == 0:
		m.heldBack(now, b, bit, msg)
	case msg.Kind == KindPromise && b.phase == reading && (b.round.promises|b.round.rejects)&bit == 0:
		b.round.promises |= bit
		b.round.refs[place] = msg.From
		b.round.consider(msg, bit)
		if bits.OnesCount64(b.round.promises) >= b.cell.group.majority {
			m.decide(now, b)
		}
	case (msg.Kind == KindPromise || msg.Kind == KindHeld) && (b.phase == writing || b.phase == resting) && (b.round.promises|b.round.rejects)&bit == 0:
		m.late(now, b, place, msg)
	case msg.Kind == KindAccept && b.phase == writing && msg.Value.Serial == b.value.Serial && b.round.promises&^b.round.accepts&bit != 0:
		b.round.accepts |= bit
		if bits.OnesCount64(b.round.accepts) >= b.cell.group.majority {
			m.committed(now, b)
		}
	}
}

// A sighting is a value that acceptors have reported, and the latest round in
// which it was written.
type sighting struct {
	Value
	at    Ballot
	by    uint64 // who knows of the same tenure, be it with an earlier end
	until Wall   // the earliest end that was reported
}

// heldBack hears that someone has the lease, in place of a promise. If most members
// know of that tenure, who wants it now is told, or waits.
func (m *Machine) heldBack(now Time, b *bid, bit uint64, msg *Message) {
	b.round.rejects |= bit
	b.round.withheld = true
	m.proposer.top = later(m.proposer.top, msg.Written)
	s := b.round.consider(msg, bit)
	switch {
	case s == nil || b.held || !b.known(s):
		m.retryIfHopeless(now, b)
	case b.wish == wishNone:
		m.unclaimed(b)
	case b.wish == wishHold:
		m.await(now, b, &s.Value)
	default:
		m.refused(b, s)
	}
}

// known reports whether a majority knows of a tenure.
func (b *bid) known(s *sighting) bool {
	return bits.OnesCount64(s.by) >= b.cell.group.majority
}

// refused ends a try for what another has, as a majority knows: until when is what
// all of them know.
func (m *Machine) refused(b *bid, s *sighting) {
	m.tell(b, Notice{What: Refused, Holder: s.Owner, Fence: s.Fence, Until: s.until})
	m.proposer.finish(b)
}

// late handles what a member says after it was decided what to write. If that
// keeps us from asking it to accept a renewal, the next one takes a whole round.
func (m *Machine) late(now Time, b *bid, place int, msg *Message) {
	bit := uint64(1) << place
	switch p := b.cell.group.peers[place]; {
	case msg.Kind == KindHeld || !m.agrees(now, b, msg):
		if b.held {
			b.round.rejects |= bit
		}
	default:
		b.round.promises |= bit
		b.round.refs[place] = msg.From
		m.catchUp(now, b, place, p)
	}
}

// catchUp asks a member whose promise came late to accept, too. If we have the
// lease by then nobody counts that, but the member should know: if it did not
// before the next renewal, it would promise other rounds to all who ask.
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

// agrees reports whether what a member says that answered late would have made no
// difference to what was decided: then it may be asked to accept it, too. What
// fences it knows of does not matter: those of leases that someone has had, a
// majority of those who were heard before knows, too.
func (m *Machine) agrees(now Time, b *bid, msg *Message) bool {
	v := &msg.Value
	if v.sameOwner(&b.value) {
		return v.Serial <= b.value.Serial
	}
	return !m.binds(now, v) || slices.ContainsFunc(b.round.seen, func(s sighting) bool { return s.sameOwner(v) && s.Serial > v.Serial })
}

// rejected counts those who have promised a later round to someone. If too few
// are left, another round is needed.
func (m *Machine) rejected(now Time, b *bid, bit uint64, by Ballot) {
	if b.phase == waiting {
		return
	}
	b.round.rejects |= bit
	m.proposer.top = later(m.proposer.top, by)
	if b.phase != resting { // if it is, what was rejected is had all the same
		m.retryIfHopeless(now, b)
	}
}

// retryIfHopeless begins another round if neither enough can promise or accept
// this one, nor enough agree on who has the lease.
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

// retry begins another round, the first time at once: we did not know how high
// ballots are by now, or who has the lease. A try, or a release, ends after some.
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

// exhausted ends a bid for which enough was done if it is a try or a release, and
// reports whether it is.
func (m *Machine) exhausted(b *bid, why Notable) bool {
	if b.held || b.wish == wishHold {
		return false
	}
	m.tell(b, Notice{What: why})
	m.proposer.finish(b)
	return true
}

// forgot hears that a member has started anew: its promises are void, and it has
// to be asked again.
func (m *Machine) forgot(now Time, b *bid, p *peer) {
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

// dropAll ends all leases, and all rounds: the clock that they count by is wrong.
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
