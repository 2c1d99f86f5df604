// Package hotkeys finds the heaviest keys of a stream of weighted keys, in constant memory.
//
// It is Space-Saving (Metwally, Agrawal and El Abbadi, 2005) with weights and with a decay that the
// caller applies. There is a fixed number of counters. A key without a counter replaces the key of
// the smallest one and inherits its count, which is recorded as the counter's error. So a count is
// never too low, and too high by at most its error. Both bounds are linear in the weights, so they
// survive multiplication by a factor (decay).
package hotkeys

import (
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// A Summary is a fixed set of counters. It is not safe for concurrent use.
type Summary struct {
	capacity int
	counters []Counter
	numbers  map[leasehold.Key]int32 // index of a key's counter
	absent   float64                 // upper bound for a key without a counter

	// heap is a min-heap of counter indexes, ordered by count. places has the heap position of each
	// counter.
	heap, places []int32
}

// A Counter bounds the weight of a key: at most Count, and at least Count - Error.
type Counter struct {
	Key          leasehold.Key
	Count, Error float64
}

// Least returns the lower bound of the key's weight.
func (c Counter) Least() float64 { return max(0, c.Count-c.Error) }

// New returns an empty summary. Error is at most the total weight divided by the capacity, and
// every key heavier than that has a counter. Counters are allocated by the first Add.
func New(capacity int) *Summary { return &Summary{capacity: capacity} }

func (s *Summary) makeCounters() {
	s.counters = make([]Counter, 0, s.capacity)
	s.numbers = make(map[leasehold.Key]int32, s.capacity)
	s.heap = make([]int32, 0, s.capacity)
	s.places = make([]int32, 0, s.capacity)
}

// Add adds a positive, finite weight to a key. It takes time logarithmic in the capacity, and
// allocates only in the first call.
func (s *Summary) Add(key leasehold.Key, weight float64) {
	if number, ok := s.numbers[key]; ok {
		s.counters[number].Count += weight
		s.down(int(s.places[number]))
		return
	}
	if s.counters == nil {
		s.makeCounters()
	}
	if len(s.counters) < s.capacity {
		// The key may have had a counter before and lost it to another key.
		s.append(Counter{Key: key, Count: s.absent + weight, Error: s.absent})
		s.up(len(s.heap) - 1)
		return
	}
	number := s.heap[0]
	least := &s.counters[number]
	s.absent = max(s.absent, least.Count)
	delete(s.numbers, least.Key)
	*least = Counter{Key: key, Count: s.absent + weight, Error: s.absent}
	s.numbers[key] = number
	s.down(0)
}

// append adds a counter at the end of the heap.
func (s *Summary) append(c Counter) {
	number := int32(len(s.counters))
	s.counters = append(s.counters, c)
	s.numbers[c.Key] = number
	s.heap = append(s.heap, number)
	s.places = append(s.places, number)
}

// Decay multiplies all weights by a factor from 0 to 1. It takes linear time.
func (s *Summary) Decay(factor float64) {
	for i := range s.counters {
		s.counters[i].Count *= factor
		s.counters[i].Error *= factor
	}
	s.absent *= factor
}

// Retain drops the counters of keys for which keep returns false. It takes linear time.
func (s *Summary) Retain(keep func(leasehold.Key) bool) {
	all := s.counters
	s.counters, s.heap, s.places = s.counters[:0], s.heap[:0], s.places[:0]
	clear(s.numbers)
	for _, c := range all {
		if keep(c.Key) {
			s.append(c) // at most the index being read: in-place filter
		}
	}
	for place := len(s.heap)/2 - 1; place >= 0; place-- {
		s.down(place)
	}
}

// All yields the counters in no particular order. The summary must not be changed during the
// iteration.
func (s *Summary) All() iter.Seq[Counter] {
	return func(yield func(Counter) bool) {
		for _, c := range s.counters {
			if !yield(c) {
				return
			}
		}
	}
}

// Absent returns the upper bound for the weight of a key without a counter, unless Retain has
// dropped that key.
func (s *Summary) Absent() float64 { return s.absent }

// at returns the count of the counter at a heap position.
func (s *Summary) at(place int) float64 { return s.counters[s.heap[place]].Count }

// up moves a counter towards the root, past larger ones.
func (s *Summary) up(place int) {
	for place > 0 {
		parent := (place - 1) / 2
		if s.at(parent) <= s.at(place) {
			return
		}
		s.swap(place, parent)
		place = parent
	}
}

// down moves a counter towards the leaves, past smaller ones.
func (s *Summary) down(place int) {
	for {
		least := place
		for child := 2*place + 1; child <= 2*place+2 && child < len(s.heap); child++ {
			if s.at(child) < s.at(least) {
				least = child
			}
		}
		if least == place {
			return
		}
		s.swap(place, least)
		place = least
	}
}

func (s *Summary) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.places[s.heap[i]], s.places[s.heap[j]] = int32(i), int32(j)
}
