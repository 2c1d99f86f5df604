package oracle

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

const someKey leasehold.Key = 7

// seen returns a record with a Check between the first two times and a Held between the third and fourth,
// unless these are 0.
func seen(session byte, g leasehold.Generation, times ...Time) Record {
	r := Record{Key: someKey, Session: leasehold.Session{session}, Generation: g, Check: Span{times[0], times[1]}}
	if len(times) == 4 {
		r.Held = Span{times[2], times[3]}
	}
	return r
}

func TestOracle(t *testing.T) {
	for _, test := range []struct {
		name      string
		records   []Record
		duals     uint64
		reversals uint64
	}{
		{"one owner", []Record{seen(1, 1, 10, 11, 12, 13), seen(1, 1, 20, 21, 22, 23)}, 0, 0},
		{"one after the other", []Record{seen(1, 1, 10, 11, 20, 21), seen(2, 2, 30, 31, 40, 41)}, 0, 0},
		{"one between two calls of the other", []Record{seen(1, 1, 10, 11), seen(2, 2, 15, 16), seen(1, 1, 20, 21)}, 1, 0},
		{"one between Check and Held of the other", []Record{seen(1, 1, 10, 11, 20, 21), seen(2, 2, 15, 16)}, 1, 0},
		{"in any order of arrival", []Record{seen(1, 1, 20, 21), seen(2, 2, 15, 16), seen(1, 1, 10, 11)}, 1, 1},
		{"staggered", []Record{seen(1, 1, 10, 11, 20, 21), seen(2, 2, 15, 16, 30, 31)}, 1, 0},
		{"a pair counts once", []Record{seen(1, 1, 10, 11, 40, 41), seen(2, 2, 15, 16), seen(2, 2, 20, 21), seen(2, 2, 30, 31)}, 1, 0},
		{"three at once", []Record{seen(1, 1, 10, 11, 40, 41), seen(2, 2, 15, 16), seen(3, 3, 25, 26)}, 2, 0},
		{"calls that overlap prove nothing", []Record{seen(1, 1, 10, 20), seen(2, 2, 12, 18)}, 0, 0},
		{"nor does the end of one and the beginning of another", []Record{seen(1, 1, 10, 11, 20, 25), seen(2, 2, 22, 30, 31, 32)}, 0, 0},
		{"a Held that failed proves nothing", []Record{seen(1, 1, 10, 11), seen(2, 2, 15, 16, 17, 18)}, 0, 0},
		{"the same session under two generations", []Record{seen(1, 1, 10, 11), seen(1, 2, 20, 21)}, 0, 0},
		{"a lower generation later", []Record{seen(1, 2, 10, 11), seen(2, 1, 20, 21)}, 0, 1},
		{"the same generation again", []Record{seen(1, 2, 10, 11), seen(2, 2, 20, 21)}, 0, 1},
		{"of one session", []Record{seen(1, 2, 10, 11), seen(1, 1, 20, 21)}, 0, 1},
		{"counted once", []Record{seen(1, 2, 10, 11), seen(2, 1, 20, 21), seen(2, 1, 30, 31)}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := New(10)
			for _, r := range test.records {
				o.Observe(r)
			}
			got := o.Judge()
			if got.Duals != test.duals || got.Reversals != test.reversals {
				t.Errorf("%d dual ownerships, %d reversals, want %d, %d", got.Duals, got.Reversals, test.duals, test.reversals)
			}
			if wrong := test.duals+test.reversals > 0; wrong != strings.HasPrefix(got.First, "key 0000000000000007: ") {
				t.Errorf("first violation %q", got.First)
			}
		})
	}
}

func TestOracleKeepsKeysApart(t *testing.T) {
	o := New(10)
	a, b := seen(1, 1, 10, 11, 20, 21), seen(2, 2, 15, 16)
	b.Key++
	o.Observe(a)
	o.Observe(b)
	if v := o.Judge(); v.First != "" {
		t.Error(v.First)
	}
}

// Consecutive owners cause no violation, for any order and delay of their records.
func TestOracleHasNoFalsePositives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := turns(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		o := New(1)
		for _, r := range records {
			o.Observe(r)
		}
		if v := o.Judge(); v.First != "" {
			t.Fatal(v.First)
		}
	})
}

// turns returns records of consecutive owners of a key. Each call has a true instant between its two clock
// readings. Calls of two owners may overlap, their true instants never do.
func turns(t *rapid.T) []Record {
	var records []Record
	now := Time(100)
	call := func() Span {
		now += Time(rapid.IntRange(1, 5).Draw(t, "step"))
		return Span{now - Time(rapid.IntRange(0, 9).Draw(t, "before")), now + Time(rapid.IntRange(0, 9).Draw(t, "after"))}
	}
	for turn := range rapid.IntRange(1, 6).Draw(t, "turns") {
		session := byte(rapid.IntRange(1, 3).Draw(t, "session"))
		for range rapid.IntRange(1, 4).Draw(t, "operations") {
			r := Record{Key: someKey, Session: leasehold.Session{session}, Generation: leasehold.Generation(turn + 1), Check: call()}
			if rapid.Bool().Draw(t, "held") {
				r.Held = call()
			}
			records = append(records, r)
		}
	}
	return records
}

func TestOracleIsBounded(t *testing.T) {
	o := New(3)
	for i := range Time(100) {
		r := seen(byte(i), leasehold.Generation(i+1), 10*i+1, 10*i+2)
		r.Key = leasehold.Key(i % 5)
		o.Observe(r)
	}
	for key, known := range o.keys {
		if len(known) > maxTenures {
			t.Errorf("key %v: %d tenures", key, len(known))
		}
	}
	if v := o.Judge(); len(o.keys) != 3 || v.Unjudged != 40 || v.First != "" {
		t.Errorf("%d keys, %+v", len(o.keys), v)
	}
	// The last tenures are kept: a late record of an earlier owner is a violation.
	late := seen(95, 96, 10*95+1, 10*95+2, 2000, 2001)
	late.Key = 0
	o.Observe(late)
	newer := seen(1, 200, 1500, 1501)
	newer.Key = 0
	o.Observe(newer)
	if v := o.Judge(); v.Duals != 1 {
		t.Errorf("%d dual ownerships, want 1", v.Duals)
	}
}
