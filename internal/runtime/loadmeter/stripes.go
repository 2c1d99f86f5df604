package loadmeter

import (
	"math/rand/v2"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// A sample is a cost that was drawn, and what it stands for.
type sample struct {
	key    leasehold.Key
	weight float64
}

const (
	stripeCount = 8
	// stripeLen: all stripes together have room for four seconds of the usual
	// pace. They are emptied every 2.5 s by default.
	stripeLen = 1024
)

// A stripe is a buffer with a lock of its own, and with cache lines of its own.
type stripe struct {
	mu      sync.Mutex
	samples []sample // the capacity is stripeLen, or 0: an owner that does no work has no buffers
	_       [96]byte
}

type stripes [stripeCount]stripe

// put adds a sample to a stripe that nobody else is at, any one. If it had to
// make room, it returns the threshold that would have spared it that, otherwise 0.
func (s *stripes) put(x sample) float64 {
	stripe := s.lock()
	defer stripe.mu.Unlock()
	return stripe.put(x)
}

// lock locks any stripe. It waits only if others are at all of them at this very
// moment.
func (s *stripes) lock() *stripe {
	first := rand.IntN(stripeCount) //nolint:gosec // any will do
	for i := range stripeCount {
		if stripe := &s[(first+i)%stripeCount]; stripe.mu.TryLock() {
			return stripe
		}
	}
	s[first].mu.Lock()
	return &s[first]
}

func (s *stripe) put(x sample) (threshold float64) {
	if cap(s.samples) == 0 {
		s.samples = make([]sample, 0, stripeLen)
	}
	for len(s.samples) == stripeLen {
		threshold = s.thin()
	}
	s.samples = append(s.samples, x)
	return threshold
}

// thin draws again what is there, with a threshold of twice the mean. A sample
// has a chance of its share of the threshold, so that no more than half are
// expected to stay, and those count for the threshold: the sum is expected to be
// what it was.
func (s *stripe) thin() float64 {
	sum := 0.0
	for _, x := range s.samples {
		sum += x.weight
	}
	threshold := 2 * sum / float64(len(s.samples))
	left := s.samples[:0]
	for _, x := range s.samples {
		switch {
		case x.weight >= threshold:
			left = append(left, x)
		case rand.Float64()*threshold < x.weight: //nolint:gosec // a sample
			left = append(left, sample{x.key, threshold})
		}
	}
	s.samples = left
	return threshold
}

// swap takes what is in the stripe, if there is something, and leaves another
// buffer in its place, emptied.
func (s *stripe) swap(empty []sample) []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return empty[:0]
	}
	full := s.samples
	s.samples = empty[:0]
	return full
}
