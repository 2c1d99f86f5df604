package leasehold_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

const maxKey leasehold.Key = 1<<64 - 1

func TestNewRange(t *testing.T) {
	for _, test := range []struct {
		start, limit leasehold.Key
		ok           bool
	}{
		{0, 0, true},
		{0, 1, true},
		{5, 6, true},
		{maxKey, 0, true},
		{maxKey - 1, maxKey, true},
		{5, 5, false},
		{6, 5, false},
		{maxKey, 1, false},
		{maxKey, maxKey, false},
	} {
		r, err := leasehold.NewRange(test.start, test.limit)
		if test.ok {
			if want := (leasehold.Range{Start: test.start, Limit: test.limit}); err != nil || r != want {
				t.Errorf("NewRange(%v, %v) = %v, %v", test.start, test.limit, r, err)
			}
			continue
		}
		wantRefusal(t, err, "new range", "start must be below limit")
	}
}

func TestAll(t *testing.T) {
	all := leasehold.All
	if all != (leasehold.Range{}) || !all.Valid() || all.Last() != maxKey {
		t.Errorf("All is %+v", all)
	}
	for _, k := range []leasehold.Key{0, 1, 1 << 63, maxKey} {
		if !all.Contains(k) {
			t.Errorf("All does not contain %v", k)
		}
	}
}

func TestRangeSize(t *testing.T) {
	for _, test := range []struct {
		r    leasehold.Range
		want uint64
	}{
		{leasehold.All, 1<<64 - 1}, // saturated: the size is 2^64
		{leasehold.Range{Start: 1}, 1<<64 - 1},
		{leasehold.Range{Start: 2}, 1<<64 - 2},
		{leasehold.Range{Limit: maxKey}, 1<<64 - 1},
		{leasehold.Range{Limit: 1}, 1},
		{leasehold.Range{Start: maxKey}, 1},
		{leasehold.Range{Start: 5, Limit: 5}, 0},
		{leasehold.Range{Start: 6, Limit: 5}, 0},
	} {
		if got := test.r.Size(); got != test.want {
			t.Errorf("Size of %v = %d, want %d", test.r, got, test.want)
		}
	}
}

// TestInvalidRangeIsEmpty: a malformed range that reaches the arithmetic
// before it reaches a check must not look like something that is held.
func TestInvalidRangeIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := leasehold.Key(rapid.Uint64Min(1).Draw(t, "limit"))
		bad := leasehold.Range{Start: max(limit, drawKey(t, "start")), Limit: limit}
		other := drawRange(t, "other")
		_, shared := bad.Intersect(other)
		if bad.Valid() || bad.Size() != 0 || bad.Contains(drawKey(t, "key")) ||
			shared || bad.Overlaps(other) || other.Overlaps(bad) || bad.Overlaps(bad) ||
			bad.Covers(other) || other.Covers(bad) || bad.Covers(bad) {
			t.Fatalf("invalid %v contains, overlaps or covers keys of %v", bad, other)
		}
	})
}

// interval is the reference implementation of Range: [low, high] in unbounded integers.
type interval struct{ low, high *big.Int }

func intervalOf(r leasehold.Range) interval {
	high := new(big.Int).SetUint64(uint64(r.Limit))
	if r.Limit == 0 {
		high.Lsh(big.NewInt(1), 64)
	}
	return interval{
		low:  new(big.Int).SetUint64(uint64(r.Start)),
		high: high.Sub(high, big.NewInt(1)),
	}
}

func (i interval) contains(k leasehold.Key) bool {
	n := new(big.Int).SetUint64(uint64(k))
	return i.low.Cmp(n) <= 0 && n.Cmp(i.high) <= 0
}

func (i interval) overlaps(o interval) bool {
	return i.low.Cmp(o.high) <= 0 && o.low.Cmp(i.high) <= 0
}

func (i interval) covers(o interval) bool {
	return i.low.Cmp(o.low) <= 0 && o.high.Cmp(i.high) <= 0
}

func (i interval) size() *big.Int {
	n := new(big.Int).Sub(i.high, i.low)
	return n.Add(n, big.NewInt(1))
}

func TestRangeArithmeticDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRange(t, "a"), drawRange(t, "b")
		x, y := intervalOf(a), intervalOf(b)
		k := drawKey(t, "k")

		if got, want := a.Contains(k), x.contains(k); got != want {
			t.Fatalf("%v contains %v: %t, want %t", a, k, got, want)
		}
		if got, want := a.Overlaps(b), x.overlaps(y); got != want {
			t.Fatalf("%v overlaps %v: %t, want %t", a, b, got, want)
		}
		if got, want := a.Covers(b), x.covers(y); got != want {
			t.Fatalf("%v covers %v: %t, want %t", a, b, got, want)
		}
		size := x.size()
		if !size.IsUint64() {
			size.SetUint64(1<<64 - 1)
		}
		if a.Size() != size.Uint64() {
			t.Fatalf("size of %v: %d, want %d", a, a.Size(), size)
		}
	})
}

func TestIntersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRange(t, "a"), drawRange(t, "b")
		both, ok := a.Intersect(b)
		if reversed, okReversed := b.Intersect(a); both != reversed || ok != okReversed {
			t.Fatalf("%v and %v share %v, %v and %v share %v", a, b, both, b, a, reversed)
		}
		if ok != a.Overlaps(b) {
			t.Fatalf("%v and %v: Intersect reports %t", a, b, ok)
		}
		if !ok {
			return
		}
		if !both.Valid() || !a.Covers(both) || !b.Covers(both) {
			t.Fatalf("%v and %v share %v", a, b, both)
		}
		for _, k := range []leasehold.Key{a.Start, a.Last(), b.Start, b.Last(), drawKey(t, "k")} {
			if both.Contains(k) != (a.Contains(k) && b.Contains(k)) {
				t.Fatalf("%v and %v share %v, which is wrong for key %v", a, b, both, k)
			}
		}
	})
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]leasehold.Range{
		"0000000000000000-end":              leasehold.All,
		"ffffffffffffffff-end":              {Start: maxKey},
		"0000000000000000-0000000000000001": {Limit: 1},
		"4000000000000000-8000000000000000": {Start: 1 << 62, Limit: 1 << 63},
		"00000000000000AA-00000000000000BB": {Start: 0xaa, Limit: 0xbb},
	} {
		got, err := leasehold.ParseRange(text)
		if err != nil || got != want {
			t.Errorf("ParseRange(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseRangeRefuses(t *testing.T) {
	for _, test := range []struct{ text, why string }{
		{"", "want start-limit"},
		{"0000000000000000", "want start-limit"},
		{"-", "have 0 bytes"},
		{"-end", "have 0 bytes"},
		{"0000000000000000-", "have 0 bytes"},
		{"0000000000000000-END", "have 3 bytes"},
		{"0-1", "have 1 bytes"},
		{"000000000000000x-end", "'x' at position 15"},
		{"0000000000000000-000000000000000x", "'x' at position 15"},
		{"0000000000000000-end-", "have 4 bytes"},
		{"0000000000000000-0000000000000001-", "have 17 bytes"},
		{"0000000000000005-0000000000000000", `written "end"`},
		{"0000000000000005-0000000000000005", "start must be below limit"},
		{"0000000000000006-0000000000000005", "start must be below limit"},
		{strings.Repeat("-", 1<<20), "have 0 bytes"},
	} {
		_, err := leasehold.ParseRange(test.text)
		wantRefusal(t, err, "parse range", test.why)
	}
}

func TestParseRangeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRange(t, "range")
		got, err := leasehold.ParseRange(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseRange(%q) = %v, %v", want.String(), got, err)
		}
	})
}

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{
		"", "-", "0000000000000000-end", "4000000000000000-8000000000000000",
		"8000000000000000-4000000000000000", "0000000000000000-0000000000000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := leasehold.ParseRange(text)
		if err != nil {
			wantRefusal(t, err, "parse range", "")
			return
		}
		if !r.Valid() {
			t.Errorf("ParseRange(%q) returned %v, which is invalid", text, r)
		}
		if r.String() != strings.ToLower(text) {
			t.Errorf("ParseRange(%q).String() = %q", text, r.String())
		}
	})
}

// drawRange draws valid ranges, many of them at an end of the key space.
func drawRange(t *rapid.T, label string) leasehold.Range {
	r := leasehold.Range{Start: drawKey(t, label+".Start"), Limit: drawKey(t, label+".Limit")}
	if !r.Valid() {
		r.Start, r.Limit = r.Limit, r.Start
	}
	if r.Start == r.Limit {
		r.Limit++
	}
	return r
}
