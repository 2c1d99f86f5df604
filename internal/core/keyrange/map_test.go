package keyrange_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"pgregory.net/rapid"
)

func TestMapAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { exerciseMap(t, drawHistory().Draw(t, "history")) })
}

// exerciseMap applies h to a map, one write at a time, and compares the map with the model after
// each. Halfway it clones the map and continues with both.
func exerciseMap(t failer, h history) {
	t.Helper()
	m := keyrange.SmallBlocks(keyrange.NewMap[byte](0))
	half := len(h) / 2
	var early *keyrange.Map[byte]
	for i, w := range h {
		if i == half {
			early = m.Clone()
		}
		m.Set(w.r, w.v)
		checkMap(t, m, h[:i+1])
	}
	if early == nil {
		early = m.Clone()
	}
	checkMap(t, early, h[:half])
	for _, r := range h.ranges() {
		checkWithin(t, m, h, r)
	}
	checkZip(t, early, m, h[:half], h)
	checkBuilder(t, h)

	late := m.Clone()
	for _, w := range h[:half] {
		early.Set(w.r, w.v+1)
		late.Set(w.r, w.v+1)
	}
	checkMap(t, m, h)
}

// collect returns the elements of a sequence of ranges with values.
func collect[V comparable](seq iter.Seq2[leasehold.Range, V]) []keyrange.Segment[V] {
	var out []keyrange.Segment[V]
	for r, v := range seq {
		out = append(out, keyrange.Segment[V]{Range: r, Value: v})
	}
	return out
}

func checkMap(t failer, m *keyrange.Map[byte], h history) {
	t.Helper()
	want := h.segments()
	if diff := cmp.Diff(want, collect(m.All())); diff != "" {
		t.Errorf("after %v: All (-want +got):\n%s", h, diff)
	}
	if m.Len() != len(want) {
		t.Errorf("after %v: Len = %d, want %d", h, m.Len(), len(want))
	}
	checkBlocks(t, m)
	for _, s := range want {
		last := s.Range.Limit - 1
		for _, k := range []leasehold.Key{s.Range.Start, s.Range.Start + (last-s.Range.Start)/2, last} {
			if r, v := m.At(k); r != s.Range || v != s.Value {
				t.Errorf("after %v: At(%v) = %v, %d, want %v, %d", h, k, r, v, s.Range, s.Value)
			}
		}
	}
}

// checkBlocks checks that no block is empty or too large, and that there are not many more than
// necessary.
func checkBlocks(t failer, m *keyrange.Map[byte]) {
	t.Helper()
	sizes, most := keyrange.Blocks(m)
	if len(sizes) == 0 || slices.Min(sizes) < 1 || slices.Max(sizes) > most {
		t.Errorf("blocks have sizes %v, want 1 to %d", sizes, most)
	}
}

func checkWithin(t failer, m *keyrange.Map[byte], h history, r leasehold.Range) {
	t.Helper()
	var want []keyrange.Segment[byte]
	for _, s := range segments(cuts(append(h.ranges(), r)...), func(k leasehold.Key) [2]byte {
		if holds(r, k) {
			return [2]byte{1, h.at(k)}
		}
		return [2]byte{}
	}) {
		if s.Value[0] == 1 {
			want = append(want, keyrange.Segment[byte]{Range: s.Range, Value: s.Value[1]})
		}
	}
	if diff := cmp.Diff(want, collect(m.Within(r))); diff != "" {
		t.Errorf("after %v: Within(%v) (-want +got):\n%s", h, r, diff)
	}
}

func checkZip(t failer, a, b *keyrange.Map[byte], ha, hb history) {
	t.Helper()
	type pair = keyrange.Pair[byte, byte]
	both := cuts(append(ha.ranges(), hb.ranges()...)...)
	zip := segments(both, func(k leasehold.Key) pair { return pair{A: ha.at(k), B: hb.at(k)} })
	if diff := cmp.Diff(zip, collect(keyrange.Zip(a, b))); diff != "" {
		t.Errorf("Zip of %v and %v (-want +got):\n%s", ha, hb, diff)
	}
	var different []keyrange.Segment[[2]byte]
	for _, s := range zip {
		if s.Value.A != s.Value.B {
			different = append(different, keyrange.Segment[[2]byte]{Range: s.Range, Value: [2]byte{s.Value.A, s.Value.B}})
		}
	}
	if diff := cmp.Diff(different, collect(keyrange.Diff(a, b))); diff != "" {
		t.Errorf("Diff of %v and %v (-want +got):\n%s", ha, hb, diff)
	}
}

// checkBuilder builds the map of h from all its cuts, most of which are redundant.
func checkBuilder(t failer, h history) {
	t.Helper()
	var b keyrange.Builder[byte]
	for _, k := range cuts(h.ranges()...) {
		if !b.Append(k, h.at(k)) {
			t.Errorf("Append(%v) was refused", k)
		}
		if b.Append(k, h.at(k)+1) {
			t.Errorf("Append(%v) was accepted twice", k)
		}
	}
	checkMap(t, b.Map(), h)
}

func TestMapSet(t *testing.T) {
	// The initial map is 0 up to 10, 1 up to 20, 2 up to 30, then 3.
	for _, test := range []struct {
		name   string
		r      leasehold.Range
		v      byte
		starts []leasehold.Key
	}{
		{"split one in three", leasehold.Range{Start: 12, Limit: 15}, 9, []leasehold.Key{0, 10, 12, 15, 20, 30}},
		{"cut the front off", leasehold.Range{Start: 10, Limit: 15}, 9, []leasehold.Key{0, 10, 15, 20, 30}},
		{"cut the back off", leasehold.Range{Start: 15, Limit: 20}, 9, []leasehold.Key{0, 10, 15, 20, 30}},
		{"replace one", leasehold.Range{Start: 10, Limit: 20}, 9, []leasehold.Key{0, 10, 20, 30}},
		{"replace two", leasehold.Range{Start: 10, Limit: 30}, 9, []leasehold.Key{0, 10, 30}},
		{"span a boundary", leasehold.Range{Start: 15, Limit: 25}, 9, []leasehold.Key{0, 10, 15, 25, 30}},
		{"nothing new", leasehold.Range{Start: 12, Limit: 15}, 1, []leasehold.Key{0, 10, 20, 30}},
		{"merge left", leasehold.Range{Start: 10, Limit: 15}, 0, []leasehold.Key{0, 15, 20, 30}},
		{"merge right", leasehold.Range{Start: 15, Limit: 20}, 2, []leasehold.Key{0, 10, 15, 30}},
		{"merge right, all of it", leasehold.Range{Start: 10, Limit: 20}, 2, []leasehold.Key{0, 10, 30}},
		{"all", leasehold.All, 9, []leasehold.Key{0}},
		{"first key", leasehold.Range{Start: 0, Limit: 1}, 9, []leasehold.Key{0, 1, 10, 20, 30}},
		{"last key", leasehold.Range{Start: lastKey, Limit: 0}, 9, []leasehold.Key{0, 10, 20, 30, lastKey}},
		{"empty range", leasehold.Range{Start: 15, Limit: 15}, 9, []leasehold.Key{0, 10, 20, 30}},
		{"range with limit before start", leasehold.Range{Start: 25, Limit: 5}, 9, []leasehold.Key{0, 10, 20, 30}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := keyrange.NewMap[byte](3)
			for i, limit := range []leasehold.Key{10, 20, 30} {
				m.Set(leasehold.Range{Start: limit - 10, Limit: limit}, byte(i))
			}
			m.Set(test.r, test.v)
			var starts []leasehold.Key
			for r := range m.All() {
				starts = append(starts, r.Start)
			}
			if !slices.Equal(starts, test.starts) {
				t.Errorf("segments start at %v, want %v", starts, test.starts)
			}
		})
	}
}

func TestBuilderRefuses(t *testing.T) {
	var b keyrange.Builder[string]
	if b.Map() != nil {
		t.Error("Map of an empty builder is not nil")
	}
	for _, step := range []struct {
		start leasehold.Key
		value string
		want  bool
	}{
		{1, "a", false}, // the first start must be 0
		{0, "a", true},
		{0, "b", false},
		{9, "a", true},  // merges, and adds no boundary
		{5, "b", false}, // after every boundary, but before the last start
		{9, "b", false},
		{10, "b", true},
	} {
		if got := b.Append(step.start, step.value); got != step.want {
			t.Errorf("Append(%d, %s) = %v", step.start, step.value, got)
		}
	}
	want := []keyrange.Segment[string]{
		{Range: leasehold.Range{Start: 0, Limit: 10}, Value: "a"},
		{Range: leasehold.Range{Start: 10, Limit: 0}, Value: "b"},
	}
	if diff := cmp.Diff(want, collect(b.Map().All())); diff != "" {
		t.Errorf("the map (-want +got):\n%s", diff)
	}
}

// A yield function that returned false must not be called again: the runtime would panic.
func TestMapIteratorsStop(t *testing.T) {
	m, o := keyrange.NewMap[byte](0), keyrange.NewMap[byte](1)
	m.Set(leasehold.Range{Start: 5, Limit: 9}, 3)
	for range m.All() {
		break
	}
	for range m.Within(leasehold.All) {
		break
	}
	for range keyrange.Zip(m, o) {
		break
	}
	for range keyrange.Diff(m, o) {
		break
	}
}

func TestMapSetDoesNotAllocate(t *testing.T) {
	m := benchMap()
	r, v := m.At(1 << 60)
	inner := leasehold.Range{Start: r.Start + 1, Limit: r.Start + 2}
	m.Set(inner, lease{}) // grows the slice once
	m.Set(inner, v)
	got := testing.AllocsPerRun(20, func() {
		m.Set(inner, lease{})
		m.Set(inner, v)
		m.Set(r, lease{})
		m.Set(r, v)
	})
	if got != 0 {
		t.Errorf("a split, a merge and two changes of value make %v allocations", got)
	}
}
