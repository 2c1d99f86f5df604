package flease

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// alarms are the timers of bids. A bid with a timer has at least one entry; stale entries are
// dropped when they are popped.
//
// Nearly all timers are retransmissions, each slightly later than the one before, and most are
// stale when they expire: these are in a ring buffer. All others are in a heap.
type alarms struct {
	soon  ring
	later heap
}

type alarm struct {
	at  mono.Instant
	bid *bid
}

func (a *alarms) next() mono.Instant { return min(a.soon.next(), a.later.next()) }

// push adds a timer. It goes into the ring if it is not later than within.
func (a *alarms) push(e alarm, within mono.Instant) {
	if e.at <= within && (a.soon.n == 0 || a.soon.last().at <= e.at) {
		a.soon.push(e)
		return
	}
	a.later.push(e)
}

func (a *alarms) pop() alarm {
	if a.soon.next() <= a.later.next() {
		return a.soon.pop()
	}
	return a.later.pop()
}

// soon is the latest time of a timer in the ring.
func (m *Machine) soon() mono.Instant { return m.clock.looked.Mono.Add(2 * m.cfg.Resend) }

// A ring is a ring buffer.
type ring struct {
	alarms []alarm // the length is a power of two
	first  int
	n      int
}

func (q *ring) at(i int) *alarm { return &q.alarms[(q.first+i)&(len(q.alarms)-1)] }

func (q *ring) last() *alarm { return q.at(q.n - 1) }

func (q *ring) next() mono.Instant {
	if q.n == 0 {
		return mono.Never
	}
	return q.at(0).at
}

func (q *ring) push(e alarm) {
	if q.n == len(q.alarms) {
		grown := make([]alarm, max(16, 2*q.n))
		for i := range q.n {
			grown[i] = *q.at(i)
		}
		q.alarms, q.first = grown, 0
	}
	q.n++
	*q.last() = e
}

func (q *ring) pop() alarm {
	e := *q.at(0)
	q.first = (q.first + 1) & (len(q.alarms) - 1)
	q.n--
	return e
}

// A heap is a min-heap with four children per node.
type heap []alarm

func (a *heap) next() mono.Instant {
	if len(*a) == 0 {
		return mono.Never
	}
	return (*a)[0].at
}

func (a *heap) push(e alarm) {
	h := append(*a, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent].at <= e.at {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
	*a = h
}

func (a *heap) pop() alarm {
	h := *a
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = alarm{}
	h = h[:len(h)-1]
	*a = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].at < h[least].at {
				least = c
			}
		}
		if h[least].at >= last.at {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return top
}

// maxStale is the number of stale timers that are kept in addition to one for each bid: a bid that
// waits for a long lease leaves a timer for a long time.
const maxStale = 1024

// prune drops stale timers.
func (a *heap) prune() {
	all := *a
	*a = all[:0]
	for _, e := range all { // in place: writes never pass the element being read
		if e.bid.queued == e.at {
			a.push(e)
		}
	}
	clear(all[len(*a):])
}

// clone omits stale timers.
func (a *alarms) clone(bids map[*bid]*bid) alarms {
	var out alarms
	keep := func(e alarm) {
		if b := bids[e.bid]; b != nil && b.queued == e.at {
			out.later.push(alarm{e.at, b})
		}
	}
	for i := range a.soon.n {
		keep(*a.soon.at(i))
	}
	for _, e := range a.later {
		keep(e)
	}
	return out
}
