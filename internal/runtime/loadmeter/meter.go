package loadmeter

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/partition"
)

// MaxCost is the most that can be added at once: a thousand seconds in
// nanoseconds, or a terabyte in bytes.
const MaxCost = 1e12

// pace is how many samples a second are taken of any amount of work. The time
// constant's worth of them is 30,000: one percent of the work is known to within
// six percent of itself.
const pace = 2000

// A Meter measures the work of one owner. [Meter.Count] and [Meter.Add] may be
// called from many goroutines at once; [Meter.Hold] and [Meter.Loads] by one at
// a time, on a clock that does not go back.
type Meter struct {
	// chance is out of 2^64 that a request is counted. It is 0 if requests do
	// not count. It is read by every check, and written once a second.
	chance atomic.Uint64
	// threshold is the cost from which on every one counts, as the bits of a
	// float64. It is 0 at first: each does.
	threshold atomic.Uint64
	requests  bool
	stripes   *stripes

	// The rest belongs to whoever calls Hold and Loads.
	ledger  ledger
	drained []sample
	// What was drawn since the threshold was last set.
	since mono.Instant
	drawn float64
	taken float64 // what was drawn since Taken was last asked
}

// New returns a meter that begins now, with nothing held. It counts requests or,
// if they do not count, costs.
func New(now mono.Instant, requests bool) *Meter {
	m := &Meter{requests: requests, stripes: new(stripes), ledger: newLedger(now), since: now}
	m.draw(0)
	return m
}

// Count counts a request for a key, made now. It does not allocate, but for a few
// buffers once, and costs two or three nanoseconds beside a reading of the clock.
func (m *Meter) Count(now mono.Instant, key leasehold.Key) {
	if chance := m.chance.Load(); lot(now, key) < chance {
		m.keep(sample{key, math.MaxUint64 / float64(chance)})
	}
}

// lot is a number that looks as if drawn at random. A loop that takes the same
// time for each turn, and so reads the clock at regular intervals, still draws
// evenly; and keys that take turns in it draw independently.
func lot(now mono.Instant, key leasehold.Key) uint64 {
	x := (uint64(now) + uint64(key)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return (x ^ x>>32) * 0x94d049bb133111eb
}

// Add counts what work on a key has cost. A cost that is none is ignored, and
// reported as false: one that is negative, not a number, or above MaxCost. If
// requests count, nothing else does.
//
// It costs some 10 ns.
func (m *Meter) Add(key leasehold.Key, cost float64) bool {
	if !(cost >= 0 && cost <= MaxCost) || m.requests {
		return false
	}
	threshold := math.Float64frombits(m.threshold.Load())
	switch {
	case cost == 0:
	case cost >= threshold:
		m.keep(sample{key, cost})
	case rand.Float64()*threshold < cost: //nolint:gosec // a sample
		m.keep(sample{key, threshold})
	}
	return true
}

// keep puts a sample into a buffer.
func (m *Meter) keep(s sample) {
	if threshold := m.stripes.put(s); threshold > math.Float64frombits(m.threshold.Load()) {
		m.draw(threshold)
	}
}

// draw sets the threshold.
func (m *Meter) draw(threshold float64) {
	m.threshold.Store(math.Float64bits(threshold))
	switch {
	case !m.requests:
	case threshold <= 1:
		m.chance.Store(math.MaxUint64)
	default:
		m.chance.Store(uint64(math.MaxUint64 / min(threshold, 1<<40)))
	}
}

// Hold says what is held from now on: leases that are sorted and do not overlap.
// What is known about keys that stay held is kept.
func (m *Meter) Hold(now mono.Instant, leases []leasehold.Lease) {
	m.settle(now)
	m.ledger.hold(leases)
}

// Loads returns what the keys held cost now, as far as that is known.
func (m *Meter) Loads(now mono.Instant) *partition.Loads {
	m.settle(now)
	return m.ledger.loads()
}

// Taken returns how much work there was since it was last asked, as far as Hold and
// Loads have seen it. It is for whoever calls these.
func (m *Meter) Taken() float64 {
	taken := m.taken
	m.taken = 0
	return taken
}

// settle enters what has been drawn until now into the books.
func (m *Meter) settle(now mono.Instant) {
	m.ledger.advance(now)
	for i := range m.stripes {
		m.drained = m.stripes[i].swap(m.drained)
		for _, s := range m.drained {
			m.drawn += s.weight
			m.taken += s.weight
			m.ledger.enter(s)
		}
	}
	if passed := now.Sub(m.since); passed >= time.Second {
		m.draw(m.drawn / passed.Seconds() / pace)
		m.since, m.drawn = now, 0
	}
}
