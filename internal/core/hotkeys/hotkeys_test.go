package hotkeys

import (
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

// exact is the reference: the true weight of each key.
type exact map[leasehold.Key]float64

// slack is the tolerated rounding error of a sum.
func slack(sum float64) float64 { return 1e-9 * (sum + 1e-300) }

// check compares a summary with the true weights. everything is the decayed total weight, including
// that of keys that Retain has dropped.
func check(t rapid.TB, s *Summary, truth exact, everything float64) {
	t.Helper()
	seen := make(map[leasehold.Key]bool)
	e := slack(everything)
	for c := range s.All() {
		w := truth[c.Key]
		switch {
		case seen[c.Key]:
			t.Fatalf("%v has two counters", c.Key)
		case c.Least() > w+e || c.Count < w-e:
			t.Fatalf("%v weighs %v, and the summary has %v to %v", c.Key, w, c.Least(), c.Count)
		case c.Error > everything/float64(s.capacity)+e:
			t.Fatalf("%v: an error of %v, with %v in %d counters", c.Key, c.Error, everything, s.capacity)
		}
		seen[c.Key] = true
	}
	for key, w := range truth {
		if !seen[key] && w > s.Absent()+e {
			t.Fatalf("%v weighs %v and has no counter: it should weigh at most %v", key, w, s.Absent())
		}
	}
	if s.Absent() > everything/float64(s.capacity)+e {
		t.Fatalf("keys without a counter may weigh %v, with %v in %d counters", s.Absent(), everything, s.capacity)
	}
	for place := 1; place < len(s.heap); place++ {
		if s.at(place) < s.at((place-1)/2) {
			t.Fatalf("the counter at %d of the heap is smaller than its parent", place)
		}
	}
	if len(seen) > s.capacity || len(s.numbers) != len(seen) || len(s.heap) != len(seen) || len(s.places) != len(seen) {
		t.Fatalf("%d counters, %d numbers, %d in the heap, %d places, of %d", len(seen), len(s.numbers), len(s.heap), len(s.places), s.capacity)
	}
}

// Bounds hold for any sequence of Add, Decay and Retain.
func TestSummaryAgainstAnExactCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, truth, everything := New(rapid.IntRange(1, 4).Draw(t, "capacity")), exact{}, 0.0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key := leasehold.Key(rapid.Uint64Range(0, 9).Draw(t, "key"))
				weight := rapid.Float64Range(1e-6, 1e6).Draw(t, "weight")
				s.Add(key, weight)
				truth[key] += weight
				everything += weight
			},
			"decay": func(t *rapid.T) {
				factor := rapid.Float64Range(0, 1).Draw(t, "factor")
				s.Decay(factor)
				for key := range truth {
					truth[key] *= factor
				}
				everything *= factor
			},
			"retain": func(t *rapid.T) {
				odd := rapid.Bool().Draw(t, "odd")
				keep := func(key leasehold.Key) bool { return (key%2 == 1) == odd }
				s.Retain(keep)
				for key := range truth {
					if !keep(key) {
						delete(truth, key)
					}
				}
			},
			"": func(t *rapid.T) { check(t, s, truth, everything) },
		})
	})
}

// With at most as many keys as counters, all counts are exact.
func TestFewKeysAreCountedExactly(t *testing.T) {
	s := New(4)
	for i := range 100 {
		s.Add(leasehold.Key(i%4), float64(1+i%4))
	}
	got := slices.SortedFunc(s.All(), func(a, b Counter) int { return int(a.Key) - int(b.Key) })
	want := []Counter{{Key: 0, Count: 25}, {Key: 1, Count: 50}, {Key: 2, Count: 75}, {Key: 3, Count: 100}}
	if !slices.Equal(got, want) || s.Absent() != 0 {
		t.Errorf("%v, absent %v; want %v", got, s.Absent(), want)
	}
}

// A long stream of distinct keys makes none of them look hot, and does not hide the hot key.
func TestColdKeysAreNotHot(t *testing.T) {
	const hot = leasehold.Key(7)
	s := New(64)
	for i := range 100_000 {
		s.Add(leasehold.Key(1000+i), 1)
		if i%10 == 0 {
			s.Add(hot, 1)
		}
	}
	for c := range s.All() {
		if c.Key == hot && c.Least() < 8_000 {
			t.Errorf("the hot key weighs 10000, and its lower bound is %v", c.Least())
		}
		if c.Key != hot && c.Least() > 1 {
			t.Errorf("%v was added once, and its lower bound is %v", c.Key, c.Least())
		}
	}
}

// A key that was hot long ago loses its counter.
func TestDecayDropsOldKeys(t *testing.T) {
	s := New(2)
	s.Add(1, 1e6)
	for range 40 {
		s.Decay(0.5)
		s.Add(2, 1)
		s.Add(3, 1)
	}
	for c := range s.All() {
		if c.Key == 1 {
			t.Errorf("key 1 still has a counter, at %v", c.Count)
		}
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	s, key := New(64), leasehold.Key(0)
	if n := testing.AllocsPerRun(10_000, func() { key++; s.Add(key%200, 1) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	s, key := New(512), leasehold.Key(0)
	for b.Loop() {
		key = key*6364136223846793005 + 1442695040888963407
		s.Add(key>>52, 1)
	}
}
