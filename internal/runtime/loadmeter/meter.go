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

// MaxCost is the maximum of a single cost: a thousand seconds in nanoseconds, or a terabyte in bytes.
const MaxCost = 1e12

// samplesPerSecond is the target rate of samples for any load. Averages cover about 30,000 samples: the
// standard error of a share of one percent is six percent of it.
const samplesPerSecond = 2000

// A Meter measures the work of one owner. [Meter.Count] and [Meter.Add] are safe for concurrent use. [Meter.Hold],
// [Meter.Loads] and [Meter.Taken] are for one goroutine at a time, with a monotonic clock.
type Meter struct {
	// chance is the probability of sampling a request, times 2^64; 0 if requests do not count. Every
	// check reads it; it is written about once a second.
	chance atomic.Uint64
	// threshold is the cost from which on every cost is counted, as the bits of a float64; initially
	// 0.
	threshold atomic.Uint64
	requests  bool
	stripes   *stripes

	// The following fields are for Hold, Loads and Taken.
	ledger  ledger
	drained []sample
	since   mono.Instant // when the threshold was last adapted
	sampled float64      // weight of samples since then
	taken   float64      // weight of samples since the last call of Taken
}

// New returns a meter without leases. It counts requests, or costs if requests is false.
func New(now mono.Instant, requests bool) *Meter {
	m := &Meter{requests: requests, stripes: new(stripes), ledger: newLedger(now), since: now}
	m.setThreshold(0)
	return m
}

// Count counts a request for a key at the current instant. It allocates only the buffers, once, and takes
// two or three nanoseconds besides the clock reading.
func (m *Meter) Count(now mono.Instant, key leasehold.Key) {
	if chance := m.chance.Load(); hash(now, key) < chance {
		m.keep(sample{key, math.MaxUint64 / float64(chance)})
	}
}

// hash returns a pseudorandom number for a clock reading and a key. It is uniform also in a loop with regular clock
// readings, and independent for the keys in such a loop.
func hash(now mono.Instant, key leasehold.Key) uint64 {
	x := (uint64(now) + uint64(key)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return (x ^ x>>32) * 0x94d049bb133111eb
}

// Add counts the cost of work on a key. It reports false for an invalid cost, which it ignores: negative,
// not a number, or above MaxCost; and always if the meter counts requests. It takes about 10 ns.
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

// keep adds a sample to a buffer.
func (m *Meter) keep(s sample) {
	if threshold := m.stripes.put(s); threshold > math.Float64frombits(m.threshold.Load()) {
		m.setThreshold(threshold)
	}
}

// setThreshold sets the threshold and the probability of requests.
func (m *Meter) setThreshold(threshold float64) {
	m.threshold.Store(math.Float64bits(threshold))
	switch {
	case !m.requests:
	case threshold <= 1:
		m.chance.Store(math.MaxUint64)
	default:
		m.chance.Store(uint64(math.MaxUint64 / min(threshold, 1<<40)))
	}
}

// Hold replaces the held leases, which are sorted and do not overlap. The averages of keys that stay held are kept.
func (m *Meter) Hold(now mono.Instant, leases []leasehold.Lease) {
	m.drain(now)
	m.ledger.hold(leases)
}

// Loads returns the current loads of the held keys.
func (m *Meter) Loads(now mono.Instant) *partition.Loads {
	m.drain(now)
	return m.ledger.loads()
}

// Taken returns the work since its last call, up to the last call of Hold or Loads.
func (m *Meter) Taken() float64 {
	taken := m.taken
	m.taken = 0
	return taken
}

// drain moves all samples from the buffers to the ledger, and adapts the threshold.
func (m *Meter) drain(now mono.Instant) {
	m.ledger.advance(now)
	for i := range m.stripes {
		m.drained = m.stripes[i].swap(m.drained)
		for _, s := range m.drained {
			m.sampled += s.weight
			m.taken += s.weight
			m.ledger.enter(s)
		}
	}
	if passed := now.Sub(m.since); passed >= time.Second {
		m.setThreshold(m.sampled / passed.Seconds() / samplesPerSecond)
		m.since, m.sampled = now, 0
	}
}
