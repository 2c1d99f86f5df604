package owner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// drawLeases draws leases as the machine publishes them: sorted, without
// overlaps, often adjacent and up to the ends of the key space.
func drawLeases(t *rapid.T) []leasehold.Lease {
	points := rapid.SliceOfNDistinct(rapid.OneOf(
		rapid.Uint64(), rapid.Uint64Range(0, 20), rapid.Uint64Range(^uint64(0)-20, ^uint64(0)),
	), 1, 20, rapid.ID).Draw(t, "points")
	slices.Sort(points)
	var leases []leasehold.Lease
	for i, p := range points {
		r := leasehold.Range{Start: leasehold.Key(p)}
		if i+1 < len(points) {
			r.Limit = leasehold.Key(points[i+1])
		}
		if rapid.Bool().Draw(t, "held") {
			leases = append(leases, leasehold.Lease{Range: r, Generation: leasehold.Generation(i + 1)})
		}
	}
	return leases
}

// A check reads the clock: a delay of the machine does not extend
// a lease.
func TestChecksFailAtDeadline(t *testing.T) {
	o := holder64()
	lease, ok := o.Check(1)
	if !ok || !o.Held(lease) || len(o.Leases()) != 64 {
		t.Fatal("holds nothing")
	}
	const gap = 1 << 57
	if _, ok := o.Check(gap); ok || o.Held(Lease{Key: gap}) {
		t.Error("holds a key that no lease covers")
	}
	h := *o.holding.Load()
	h.until = o.clock.Now()
	o.holding.Store(&h)
	if _, ok := o.Check(1); ok || o.Held(lease) || o.Leases() != nil {
		t.Error("a check succeeds at the deadline")
	}
}

// The index and the machine's view find the same leases.
func TestAreasMatchView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		view := machine.View{Leases: drawLeases(t), Until: mono.Never}
		areas := newAreas(view.Leases)
		var probes []leasehold.Key
		for _, l := range view.Leases {
			probes = append(probes, l.Range.Start-1, l.Range.Start, l.Range.Last(), l.Range.Limit)
		}
		probes = append(probes, leasehold.Key(rapid.Uint64().Draw(t, "key")), 0, ^leasehold.Key(0))
		for _, k := range probes {
			want, held := view.Check(0, k)
			got := areas.find(k)
			if held != (got.Generation != 0) || held && *got != want {
				t.Fatalf("key %v: %v, want %v (%t)", k, got, want, held)
			}
			if !got.Range.Contains(k) {
				t.Fatalf("key %v: not in %v", k, got.Range)
			}
		}
	})
}
