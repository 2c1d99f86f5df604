// Package hotkeys finds the keys that weigh most in a long stream of weighted
// keys, in memory that does not grow with the number of keys.
//
// It is Space-Saving (Metwally, Agrawal and El Abbadi, 2005) with weights, and
// with a decay that the caller applies: a counter for each of a fixed number of
// keys; a key that has none takes over the smallest, with what is on it. So what
// a counter shows is never too little, and too much by no more than what it
// showed when its key took it over, which it remembers. All of that is linear in
// the weights, so that it stays true when everything is multiplied by a factor.
package hotkeys

import (
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// A Summary is a fixed number of counters. It is not safe for concurrent use.
type Summary struct {
	capacity int
	counters []Counter
	numbers  map[leasehold.Key]int32 // of the counters
	absent   float64                 // what a key without a counter weighs at most

	// heap has the numbers of all counters, none of them smaller than the one at
	// half its place; places says where in it each is.
	heap, places []int32
}

// A Counter says what a key weighs: at most Count, and at least Count - Error.
type Counter struct {
	Key          leasehold.Key
	Count, Error float64
}

// Least returns what the key weighs at least.
func (c Counter) Least() float64 { return max(0, c.Count-c.Error) }

// New returns an empty summary. With so many counters, Error is at most the
// weight of all keys together divided by the capacity, and every key that weighs
// more than that has a counter. They are made when there is something to count.
func New(capacity int) *Summary { return &Summary{capacity: capacity} }

func (s *Summary) makeCounters() {
	s.counters = make([]Counter, 0, s.capacity)
	s.numbers = make(map[leasehold.Key]int32, s.capacity)
	s.heap = make([]int32, 0, s.capacity)
	s.places = make([]int32, 0, s.capacity)
}

// Add adds to the weight of a key, a positive and finite number. It takes time
// logarithmic in the capacity, and does not allocate after the first.
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
		// The key may have had a counter before, and have lost it.
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

// Retain forgets the keys that keep does not want. It takes linear time.
func (s *Summary) Retain(keep func(leasehold.Key) bool) {
	all := s.counters
	s.counters, s.heap, s.places = s.counters[:0], s.heap[:0], s.places[:0]
	clear(s.numbers)
	for _, c := range all {
		if keep(c.Key) {
			s.append(c) // behind where we read
		}
	}
	for place := len(s.heap)/2 - 1; place >= 0; place-- {
		s.down(place)
	}
}

// All yields the counters in no particular order. The summary must not be
// changed meanwhile.
func (s *Summary) All() iter.Seq[Counter] {
	return func(yield func(Counter) bool) {
		for _, c := range s.counters {
			if !yield(c) {
				return
			}
		}
	}
}

// Absent returns what a key that has no counter weighs at most, unless it has
// been forgotten.
func (s *Summary) Absent() float64 { return s.absent }

// at returns what the counter at a place of the heap shows.
func (s *Summary) at(place int) float64 { return s.counters[s.heap[place]].Count }

// up moves the counter at a place towards the root, past those that are larger.
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

// down moves the counter at a place away from the root, past those that are
// smaller.
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
