package loadmeter

import (
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// buffered returns the number of buffered samples and their total weight.
func (m *Meter) buffered() (n int, weight float64) {
	for i := range m.stripes {
		for _, s := range m.stripes[i].samples {
			weight += s.weight
		}
		n += len(m.stripes[i].samples)
	}
	return n, weight
}

// Sums are unbiased and the number of samples is limited for any timing of requests and resolution of the clock.
func TestSamplingIsUnbiased(t *testing.T) {
	scattered := func(i int) leasehold.Key { return leasehold.Key(i) * 0x9e3779b97f4a7c15 }
	every := func(d mono.Instant) func(int) mono.Instant {
		return func(i int) mono.Instant { return mono.Instant(i) * d }
	}
	for _, test := range []struct {
		name string
		when func(int) mono.Instant
		key  func(int) leasehold.Key
	}{
		{"scattered keys", every(500), scattered},
		{"one key", every(500), func(int) leasehold.Key { return 7 }},
		{"key 0", every(500), func(int) leasehold.Key { return 0 }},
		{"in lockstep with the clock", every(512), func(int) leasehold.Key { return 1 << 63 }},
		{"two keys that take turns", every(512), func(i int) leasehold.Key { return leasehold.Key(i%2) << 63 }},
		{"eight keys that take turns", every(256), func(i int) leasehold.Key { return leasehold.Key(i%8) << 61 }},
		{"1000 keys that take turns", every(500), func(i int) leasehold.Key { return leasehold.Key(i%1000) << 54 }},
		{"a clock of microseconds", func(i int) mono.Instant { return mono.Instant(i) * 500 / 1000 * 1000 }, scattered},
		{"a clock of half milliseconds", func(i int) mono.Instant { return mono.Instant(i) * 500 / 500_000 * 500_000 }, scattered},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := New(0, true)
			m.Hold(0, everything())
			begin := mono.Instant(0)
			taken, seconds := 0, 0
			for i := 0; begin < 6*second; i++ {
				now := test.when(i)
				if now >= begin+second {
					begin += second
					n, _ := m.buffered()
					if begin > second { // the first adapts the threshold
						taken, seconds = taken+n, seconds+1
					}
					m.drain(begin)
				}
				m.Count(now, test.key(i))
			}
			if perSecond := taken / seconds; perSecond < samplesPerSecond/2 || perSecond > 2*samplesPerSecond {
				t.Errorf("%d samples in a second, want about %d", perSecond, samplesPerSecond)
			}
			rate := float64(second) / float64(test.when(1<<20)) * (1 << 20)
			wantAbout(t, "all", total(m.Loads(begin), leasehold.Range{}), rate, 0.1)
		})
	}
}

// Each of a few keys has its share of the samples.
func TestSamplingFavoursNoKey(t *testing.T) {
	m := New(0, true)
	m.Hold(0, everything())
	now := mono.Instant(0)
	const keys = 8
	for i := range 8_000_000 { // 8 s
		now += 1000
		m.Count(now, leasehold.Key(i%keys)<<61)
		if now%second == 0 {
			m.drain(now)
		}
	}
	l := m.Loads(now)
	for i := range leasehold.Key(keys) {
		wantAbout(t, "a key", total(l, leasehold.Range{Start: i << 61, Limit: (i + 1) << 61}), 1e6/keys, 0.15)
	}
	if len(l.Hot) != keys {
		t.Errorf("hot keys: %v", l.Hot)
	}
}

// Sampling is fair in a loop over a hundred keys with clock readings for which a hash of one multiplication
// would be nearly constant per key.
func TestSamplingInLoopInStepWithClock(t *testing.T) {
	const keys = 100
	period, least := mono.Instant(0), uint64(math.MaxUint64)
	for p := uint64(150_000); p < 300_000; p++ {
		if moves := p * 0xbf58476d1ce4e5b9; min(moves, -moves) < least {
			period, least = mono.Instant(p), min(moves, -moves)
		}
	}
	m := New(0, true)
	m.Hold(0, everything())
	now := mono.Instant(0)
	for i := 0; now < 6*second; i++ {
		now = mono.Instant(i/keys)*period + mono.Instant(i%keys)*(period/keys)
		m.Count(now, leasehold.Key(i%keys)<<57)
		if i%100_000 == 0 {
			m.drain(now)
		}
	}
	l := m.Loads(now)
	for i := range leasehold.Key(keys) {
		got := total(l, leasehold.Range{Start: i << 57, Limit: (i + 1) << 57})
		wantAbout(t, "a key", got, float64(second)/float64(period), 0.6)
	}
}

// At low rates every request is counted.
func TestFewRequestsAreCountedExactly(t *testing.T) {
	m := New(0, true)
	m.Hold(0, everything())
	for i := range 1000 {
		m.Count(mono.Instant(i)*second/500, leasehold.Key(i)<<50)
		if i%500 == 499 {
			m.drain(mono.Instant(i+1) * second / 500)
		}
	}
	wantAbout(t, "all", total(m.Loads(2*second), leasehold.Range{}), 500, 1e-6)
}

// A burst between two drains needs no more memory than the buffers, and is estimated.
func TestBurst(t *testing.T) {
	m := New(0, true)
	m.Hold(0, everything())
	for i := range 3_000_000 {
		m.Count(mono.Instant(i)*100, leasehold.Key(i)<<40)
	}
	n, weight := m.buffered()
	if n > stripeCount*stripeLen || n < stripeCount*stripeLen/4 {
		t.Errorf("%d samples are buffered", n)
	}
	wantAbout(t, "weight", weight, 3e6, 0.1) // 4 standard deviations at least
	if chance := m.chance.Load(); chance > math.MaxUint64/256 {
		t.Errorf("the sampling probability is still %v", float64(chance)/math.MaxUint64)
	}
}

// The sum of costs of very different sizes is unbiased, and a large one is not missed.
func TestCosts(t *testing.T) {
	m := New(0, false)
	m.Hold(0, evenly(2))
	const n = 2_000_000
	sum := 0.0
	for i := range n {
		cost := math.Pow(10, float64(i%7)-3) // a thousandth to a thousand
		sum += cost
		m.Add(1, cost)
	}
	m.Add(1<<63, 1e9)
	if n, _ := m.buffered(); n > stripeCount*stripeLen {
		t.Errorf("%d samples are buffered", n)
	}
	l := m.Loads(4 * second)
	wantAbout(t, "many", total(l, leasehold.Range{Limit: 1 << 63}), sum/4, 0.1)
	wantAbout(t, "a large one", total(l, leasehold.Range{Start: 1 << 63}), 1e9/4, 1e-6)
}

func TestInvalidCosts(t *testing.T) {
	m := New(0, false)
	m.Hold(0, everything())
	for _, cost := range []float64{-1, math.Inf(-1), math.Inf(1), math.NaN(), 2 * MaxCost, -5e-324} {
		if m.Add(1, cost) {
			t.Errorf("cost %v is accepted", cost)
		}
	}
	for _, cost := range []float64{0, math.Copysign(0, -1), 5e-324, MaxCost} {
		if !m.Add(1, cost) {
			t.Errorf("cost %v is rejected", cost)
		}
	}
	m.Count(0, 1) // requests do not count
	l := m.Loads(2 * second)
	wantValid(t, l)
	wantAbout(t, "all", total(l, leasehold.Range{}), MaxCost/2, 1e-6)
	if m := New(0, true); m.Add(1, 1) {
		t.Error("a meter of requests accepts a cost")
	}
}

// Resampling of the smallest positive costs ends.
func TestTinyCosts(t *testing.T) {
	m := New(0, false)
	m.Hold(0, everything())
	for range 4 * stripeCount * stripeLen {
		m.Add(1, 5e-324)
	}
	wantValid(t, m.Loads(2*second))
}

// Many costs of the maximum size stay within the limits of the protocol.
func TestLargestCosts(t *testing.T) {
	m := New(0, false)
	m.Hold(0, everything())
	for i := range 1_000_000 {
		m.Add(leasehold.Key(i)<<44, MaxCost)
	}
	l := m.Loads(second + second/10)
	wantValid(t, l)
	if len(l.Cells) < 450 {
		t.Errorf("%d cells", len(l.Cells))
	}
}

// With concurrent calls of Count and Loads no sample is lost or counted twice.
func TestCountingFromManyGoroutines(t *testing.T) {
	const workers, each = 8, stripeLen / 8 // one buffer has room for all samples, so that none is dropped
	for _, requests := range []bool{true, false} {
		m := New(0, requests)
		m.Hold(0, everything())
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					key := leasehold.Key(i*workers+w) << 50
					if requests {
						m.Count(mono.Instant(i), key)
					} else {
						m.Add(key, 1)
					}
				}
			})
		}
		sum := 0.0
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			m.Hold(0, evenly(3))
			m.drain(0)
		}
		for _, a := range m.ledger.accounts {
			sum += a.work
		}
		if m.sampled != workers*each {
			t.Errorf("requests %t: %v counted, want %d", requests, m.sampled, workers*each)
		}
		wantAbout(t, "the books have", sum, workers*each/memory.Seconds(), 1e-6)
	}
}

// Hold and Loads at the same instant do not divide by 0.
func TestMeterAtOneInstant(t *testing.T) {
	m := New(second, true)
	m.Hold(second, everything())
	m.Count(second, 1)
	wantValid(t, m.Loads(second))
	m.Count(second, 1)
	wantValid(t, m.Loads(second.Add(time.Nanosecond)))
}

func BenchmarkDrain(b *testing.B) {
	m := New(0, true)
	m.Hold(0, evenly(64))
	now := mono.Instant(0)
	for b.Loop() {
		b.StopTimer()
		for i := range 5000 { // 2.5 s at samplesPerSecond
			m.keep(sample{leasehold.Key(i) * 0x9e3779b97f4a7c15, 1000})
		}
		now += 5 * second / 2
		b.StartTimer()
		m.Loads(now)
	}
}

// Meters without work have no buffers: a process may have many idle owners.
func TestIdleMetersAreSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const meters = 100
	for range meters {
		m := New(0, true)
		m.Hold(1, []leasehold.Lease{{Range: leasehold.Range{Start: 1, Limit: 2}, Generation: 1}})
		m.Loads(2)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / meters; each > 8<<10 {
		t.Errorf("an idle meter takes %d bytes, want at most 8 kB", each)
	}
}
