package loadmeter

import (
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

// lease returns a lease without generation.
func lease(start, limit leasehold.Key) leasehold.Lease {
	return leasehold.Lease{Range: leasehold.Range{Start: start, Limit: limit}, Generation: 1}
}

// everything returns one lease on all keys.
func everything() []leasehold.Lease { return []leasehold.Lease{lease(0, 0)} }

// evenly returns n leases that cover the key space between them.
func evenly(n int) []leasehold.Lease {
	out := make([]leasehold.Lease, n)
	step := ^leasehold.Key(0)/leasehold.Key(n) + 1
	for i := range out {
		out[i] = lease(leasehold.Key(i)*step, leasehold.Key(i+1)*step)
	}
	out[n-1].Range.Limit = 0
	return out
}

func TestNumberOfCells(t *testing.T) {
	for _, test := range []struct {
		name   string
		leases []leasehold.Lease
		want   int
	}{
		{"nothing is held", nil, 0},
		{"everything", everything(), 512},
		{"two", evenly(2), 512},
		{"three", evenly(3), 3 * 128},
		{"64, as is usual", evenly(64), 512},
		{"600", evenly(600), 600},
		{"more than cells are wanted", evenly(5000), 5000},
		{"a single key", []leasehold.Lease{lease(7, 8)}, 1},
		{"the last key", []leasehold.Lease{lease(1<<64-1, 0)}, 1},
		{"five keys", []leasehold.Lease{lease(7, 12)}, 5},
		{"a number of keys that cannot be halved", []leasehold.Lease{lease(0, 1025)}, 342},
	} {
		if got := cut(test.leases).cells(); got != test.want {
			t.Errorf("%s: %d cells, want %d", test.name, got, test.want)
		}
	}
}

// drawLeases generates sorted leases: narrow and wide, adjacent and with gaps.
func drawLeases(t *rapid.T) []leasehold.Lease {
	bounds := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3000)), 0, 40, rapid.ID).Draw(t, "bounds")
	var out []leasehold.Lease
	var s []leasehold.Key
	for _, b := range bounds {
		s = append(s, leasehold.Key(b))
	}
	slices.Sort(s)
	for i, start := range s {
		limit := leasehold.Key(0)
		if i+1 < len(s) {
			limit = s[i+1]
		}
		if rapid.Bool().Draw(t, "held") {
			out = append(out, lease(start, limit))
		}
	}
	return out
}

// Cells cover exactly the leases, each key once, and find agrees.
func TestCellsCoverTheLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leases := drawLeases(t)
		l := cut(leases)
		if n := l.cells(); n > max(maxCells, len(leases)) || len(leases) > 0 && n < len(leases) {
			t.Fatalf("%d cells of %d leases", n, len(leases))
		}
		next, at := 0, 0 // the next cell, and the lease that it is in
		l.each(func(cell int, first, last leasehold.Key) {
			if at > 0 && cell == l[at-1].cell+l[at-1].cells()-1 && last != leases[at-1].Range.Last() {
				t.Fatalf("cell %d ends at %v, and its lease at %v", cell, last, leases[at-1].Range.Last())
			}
			if at < len(l) && cell == l[at].cell {
				if first != leases[at].Range.Start {
					t.Fatalf("cell %d starts at %v, and its lease at %v", cell, first, leases[at].Range.Start)
				}
				at++
			}
			if cell != next || last < first {
				t.Fatalf("cell %d, want %d: %v to %v", cell, next, first, last)
			}
			next++
			for _, key := range []leasehold.Key{first, first + (last-first)/2, last} {
				if got, ok := l.find(key); !ok || got != cell {
					t.Fatalf("%v is found in cell %d (%t), want %d", key, got, ok, cell)
				}
			}
		})
		if next != l.cells() || at != len(leases) {
			t.Fatalf("%d cells of %d leases, want %d of %d", next, at, l.cells(), len(leases))
		}
		key := leasehold.Key(rapid.Uint64().Draw(t, "key"))
		held := false
		for _, lease := range leases {
			held = held || lease.Range.Contains(key)
		}
		if _, ok := l.find(key); ok != held {
			t.Fatalf("%v found: %t, held: %t", key, ok, held)
		}
	})
}
