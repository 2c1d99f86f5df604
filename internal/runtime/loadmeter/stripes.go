package loadmeter

import (
	"math/rand/v2"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// A sample is a sampled cost with its weight.
type sample struct {
	key    leasehold.Key
	weight float64
}

const (
	stripeCount = 8
	// stripeLen is the capacity of a stripe. All stripes together have room for four seconds of
	// samplesPerSecond. They are drained every 2.5 s by default.
	stripeLen = 1024
)

// A stripe is a buffer with its own mutex and cache lines.
type stripe struct {
	mu      sync.Mutex
	samples []sample // capacity stripeLen, or 0: an idle owner has no buffers
	_       [96]byte
}

type stripes [stripeCount]stripe

// put adds a sample to any unlocked stripe. If the stripe was full it returns the threshold of the
// resampling, otherwise 0.
func (s *stripes) put(x sample) float64 {
	stripe := s.lock()
	defer stripe.mu.Unlock()
	return stripe.put(x)
}

// lock locks any stripe. It blocks only if all are locked.
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
		threshold = s.resample()
	}
	s.samples = append(s.samples, x)
	return threshold
}

// resample samples the buffer with a threshold of twice the mean. A sample stays with a probability of its
// weight divided by the threshold, and then has the weight of the threshold. So at most half are expected
// to stay, and the expected sum is unchanged.
func (s *stripe) resample() float64 {
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

// swap returns the samples of the stripe and replaces its buffer with another one. If there are none it
// keeps its buffer.
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
