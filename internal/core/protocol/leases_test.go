package protocol_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"pgregory.net/rapid"
)

func TestMissing(t *testing.T) {
	type leases = []leasehold.Lease
	for _, c := range []struct {
		name             string
		have, want, diff leases
	}{
		{"both empty", nil, nil, nil},
		{"have is empty", nil, leases{lease(1, 2, 1)}, nil},
		{"everything is missing", leases{lease(1, 2, 1), lease(4, 6, 2)}, nil, leases{lease(1, 2, 1), lease(4, 6, 2)}},
		{"nothing is missing", leases{lease(1, 9, 1)}, leases{lease(0, 0, 1)}, nil},
		{"the same in parts", leases{lease(1, 9, 1)}, leases{lease(1, 4, 1), lease(4, 9, 1)}, nil},
		{"another generation", leases{lease(1, 9, 1)}, leases{lease(1, 9, 2)}, leases{lease(1, 9, 1)}},
		{"both ends", leases{lease(1, 9, 1)}, leases{lease(3, 5, 1)}, leases{lease(1, 3, 1), lease(5, 9, 1)}},
		{"the middle", leases{lease(1, 9, 1)}, leases{lease(0, 3, 1), lease(5, 0, 1)}, leases{lease(3, 5, 1)}},
		{"the end of the key space", leases{lease(1, 0, 1)}, leases{lease(0, 9, 1)}, leases{lease(9, 0, 1)}},
		{"one lease across two", leases{lease(1, 4, 1), lease(4, 9, 2)}, leases{lease(3, 6, 2)}, leases{lease(1, 3, 1), lease(3, 4, 1), lease(6, 9, 2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.diff, protocol.Missing(c.have, c.want)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// crowd has the boundaries of the drawn leases: few keys, so that leases touch and overlap.
var crowd = []leasehold.Key{0, 1, 2, 3, 1 << 63, 1<<64 - 2, 1<<64 - 1}

// drawLeases draws leases that are sorted and do not overlap.
func drawLeases() *rapid.Generator[[]leasehold.Lease] {
	return rapid.Custom(func(t *rapid.T) []leasehold.Lease {
		var out []leasehold.Lease
		for i, start := range crowd {
			limit := leasehold.Key(0)
			if i+1 < len(crowd) {
				limit = crowd[i+1]
			}
			g := leasehold.Generation(rapid.IntRange(0, 2).Draw(t, "generation"))
			joined := rapid.Bool().Draw(t, "joined")
			if n := len(out); joined && n > 0 && out[n-1].Range.Limit == start && out[n-1].Generation == g {
				out[n-1].Range.Limit = limit
				continue
			}
			if g > 0 {
				out = append(out, lease(start, limit, g))
			}
		}
		return out
	})
}

// generationAt is the reference model of a lease set: the generation of each key.
func generationAt(leases []leasehold.Lease, k leasehold.Key) leasehold.Generation {
	for _, l := range leases {
		if k >= l.Range.Start && (l.Range.Limit == 0 || k < l.Range.Limit) {
			return l.Generation
		}
	}
	return 0
}

func TestMissingAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := drawLeases().Draw(t, "have"), drawLeases().Draw(t, "want")
		before := slices.Clone(have)
		got := protocol.Missing(have, want)
		for _, k := range crowd { // values change only at these keys
			wanted := generationAt(have, k)
			if generationAt(want, k) == wanted {
				wanted = 0
			}
			if g := generationAt(got, k); g != wanted {
				t.Errorf("at %v generation %d is missing, want %d", k, g, wanted)
			}
		}
		for i, l := range got {
			if !l.Range.Valid() || l.Generation == 0 || i > 0 && (got[i-1].Range.Limit == 0 || got[i-1].Range.Limit > l.Range.Start) {
				t.Errorf("not in order: %v", got)
			}
		}
		if !slices.Equal(have, before) {
			t.Errorf("Missing changed its argument from %v to %v", before, have)
		}
	})
}

func TestSameLeasesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLeases().Draw(t, "a"), drawLeases().Draw(t, "b")
		if rapid.Bool().Draw(t, "copied") {
			b = slices.Clone(a)
		}
		equal := len(a) == len(b)
		for i := 0; equal && i < len(a); i++ {
			equal = a[i] == b[i]
		}
		if got := protocol.SameLeases(a, b); got != equal {
			t.Errorf("%v and %v are the same: %t, want %t", a, b, got, equal)
		}
		if !protocol.SameLeases(a, a) {
			t.Errorf("%v is not the same as itself", a)
		}
	})
}

func TestSameLeasesOfSharedArray(t *testing.T) {
	all := []leasehold.Lease{lease(1, 2, 1), lease(2, 3, 1)}
	for _, c := range []struct {
		name string
		a, b []leasehold.Lease
		want bool
	}{
		{"nil and empty", nil, all[:0], true},
		{"a part of it", all, all[:1], false},
		{"another part of it", all[:1], all[1:], false},
		{"itself", all, all, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := protocol.SameLeases(c.a, c.b); got != c.want {
				t.Errorf("the same: %t, want %t", got, c.want)
			}
		})
	}
}
