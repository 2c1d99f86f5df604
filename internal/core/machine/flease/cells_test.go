package flease

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// TestCells: after any sequence of add, touch and remove, each cell is found by its name and its
// ref, others are not found, and the oldest comes first.
func TestCells(t *testing.T) { rapid.Check(t, checkCells) }

func checkCells(t *rapid.T) {
	const grain = 3
	s := newCells()
	crowd := rapid.SampledFrom([]uint32{1, 7, 1 << 30}).Draw(t, "different hashes") // few, so that they collide
	known := make(map[string]*cell)
	g := &group{}
	for now := range mono.Instant(rapid.IntRange(1, 200).Draw(t, "steps")) {
		name := fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "name"))
		hash := s.index.hash(name) % crowd
		switch c := known[name]; {
		case c == nil:
			known[name] = s.add(now, name, hash, g)
		case rapid.Bool().Draw(t, "remove"):
			s.remove(c)
			delete(known, name)
			if s.at(c.ref) != nil {
				t.Fatalf("%s was removed, and is still found", name)
			}
		default:
			before := c.touched
			if s.touch(now, c, grain); now-c.touched >= grain || c.touched < before {
				t.Fatalf("touched at %d: touched is %d, and was %d", now, c.touched, before)
			}
		}
	}
	var order []mono.Instant
	for c := s.oldest; c != nil; c = c.newer {
		order = append(order, c.touched)
		if known[c.name] != c || s.at(c.ref) != c {
			t.Fatalf("%s has the wrong position", c.name)
		}
	}
	if len(order) != len(known) || s.n != len(known) || !slices.IsSorted(order) {
		t.Fatalf("%d of %d cells in the list, count %d; touched at %v", len(order), len(known), s.n, order)
	}
	for i := range s.index.tables {
		checkTable(t, &s, &s.index.tables[i])
	}
}

// checkTable: every word is found from its home position, without a gap.
func checkTable(t *rapid.T, s *cells, table *table) {
	n := 0
	for i, w := range table.words {
		if w == 0 {
			continue
		}
		n++
		for at := table.home(w); at != i; at = table.after(at) {
			if table.words[at] == 0 {
				t.Fatalf("a gap at %d hides %s", at, s.slots[uint32(w)].name)
			}
		}
	}
	if n != table.n || 3*n > 2*len(table.words) {
		t.Fatalf("a table of %d words has %d and counts %d", len(table.words), n, table.n)
	}
}

// TestCellsFindNames uses the real hashes, as the machine does.
func TestCellsFindNames(t *testing.T) {
	s := newCells()
	g := &group{}
	name := func(i int) string { return fmt.Sprintf("resource/%d", i) }
	for i := range 2000 {
		if c, hash := s.find(name(i)); c != nil {
			t.Fatalf("%s is found before it was added", name(i))
		} else {
			s.add(0, name(i), hash, g)
		}
	}
	for i := 0; i < 2000; i += 2 {
		c, _ := s.find(name(i))
		s.remove(c)
	}
	for i := range 2000 {
		if c, _ := s.find(name(i)); (c != nil) != (i%2 == 1) || c != nil && c.name != name(i) {
			t.Errorf("find of %s returns %+v", name(i), c)
		}
	}
	for i := range 1000 {
		_, hash := s.find(name(-i - 1))
		s.add(0, name(-i-1), hash, g)
	}
	if len(s.slots) != 2001 {
		t.Errorf("%d slots for 2000 cells at a time: free slots are not reused", len(s.slots)-1)
	}
}

// TestAlarmsInOrder: timers are popped in order, from ring and heap.
func TestAlarmsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a alarms
		var want []mono.Instant
		now := mono.Instant(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				at := now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "in")))
				a.push(alarm{at: at}, now.Add(100))
				want = append(want, at)
				slices.Sort(want)
				continue
			}
			if len(want) == 0 {
				continue
			}
			if next, got := a.next(), a.pop().at; got != want[0] || next != want[0] {
				t.Fatalf("pop returns %d, next was %d, want %d", got, next, want[0])
			}
			now, want = max(now, want[0]), want[1:]
		}
		if left := a.soon.n + len(a.later); left != len(want) {
			t.Fatalf("%d are left, want %d", left, len(want))
		}
	})
}
