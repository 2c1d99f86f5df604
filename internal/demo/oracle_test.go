package demo

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

const someKey leasehold.Key = 7

// seen is a record whose Check ran from before to after, and whose Held ran from
// the third to the fourth time, unless these are 0.
func seen(session byte, g leasehold.Generation, times ...hostTime) record {
	r := record{key: someKey, session: leasehold.Session{session}, generation: g, check: span{times[0], times[1]}}
	if len(times) == 4 {
		r.held = span{times[2], times[3]}
	}
	return r
}

func TestOracle(t *testing.T) {
	for _, test := range []struct {
		name      string
		records   []record
		duals     uint64
		reversals uint64
	}{
		{"one owner", []record{seen(1, 1, 10, 11, 12, 13), seen(1, 1, 20, 21, 22, 23)}, 0, 0},
		{"one after the other", []record{seen(1, 1, 10, 11, 20, 21), seen(2, 2, 30, 31, 40, 41)}, 0, 0},
		{"one between two calls of the other", []record{seen(1, 1, 10, 11), seen(2, 2, 15, 16), seen(1, 1, 20, 21)}, 1, 0},
		{"one between Check and Held of the other", []record{seen(1, 1, 10, 11, 20, 21), seen(2, 2, 15, 16)}, 1, 0},
		{"in any order of arrival", []record{seen(1, 1, 20, 21), seen(2, 2, 15, 16), seen(1, 1, 10, 11)}, 1, 1},
		{"staggered", []record{seen(1, 1, 10, 11, 20, 21), seen(2, 2, 15, 16, 30, 31)}, 1, 0},
		{"a pair counts once", []record{seen(1, 1, 10, 11, 40, 41), seen(2, 2, 15, 16), seen(2, 2, 20, 21), seen(2, 2, 30, 31)}, 1, 0},
		{"three at once", []record{seen(1, 1, 10, 11, 40, 41), seen(2, 2, 15, 16), seen(3, 3, 25, 26)}, 2, 0},
		{"calls that overlap prove nothing", []record{seen(1, 1, 10, 20), seen(2, 2, 12, 18)}, 0, 0},
		{"nor does the end of one and the beginning of another", []record{seen(1, 1, 10, 11, 20, 25), seen(2, 2, 22, 30, 31, 32)}, 0, 0},
		{"a Held that failed proves nothing", []record{seen(1, 1, 10, 11), seen(2, 2, 15, 16, 17, 18)}, 0, 0},
		{"the same session under two generations", []record{seen(1, 1, 10, 11), seen(1, 2, 20, 21)}, 0, 0},
		{"a lower generation later", []record{seen(1, 2, 10, 11), seen(2, 1, 20, 21)}, 0, 1},
		{"the same generation again", []record{seen(1, 2, 10, 11), seen(2, 2, 20, 21)}, 0, 1},
		{"of one session", []record{seen(1, 2, 10, 11), seen(1, 1, 20, 21)}, 0, 1},
		{"counted once", []record{seen(1, 2, 10, 11), seen(2, 1, 20, 21), seen(2, 1, 30, 31)}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOracle(10)
			for _, r := range test.records {
				o.observe(r)
			}
			got := o.judge()
			if got.duals != test.duals || got.reversals != test.reversals {
				t.Errorf("%d dual ownerships, %d reversals, want %d, %d", got.duals, got.reversals, test.duals, test.reversals)
			}
			if wrong := test.duals+test.reversals > 0; wrong != strings.HasPrefix(got.first, "key 0000000000000007: ") {
				t.Errorf("it says %q", got.first)
			}
		})
	}
}

func TestOracleKeepsKeysApart(t *testing.T) {
	o := newOracle(10)
	a, b := seen(1, 1, 10, 11, 20, 21), seen(2, 2, 15, 16)
	b.key++
	o.observe(a)
	o.observe(b)
	if v := o.judge(); v.first != "" {
		t.Error(v.first)
	}
}

// TestOracleIsFair: owners that take turns are never accused, in whatever order
// and however late their records arrive.
func TestOracleIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := turns(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		o := newOracle(1)
		for _, r := range records {
			o.observe(r)
		}
		if v := o.judge(); v.first != "" {
			t.Fatal(v.first)
		}
	})
}

// turns is what owners of a key say who take turns. A call finds out at its true
// instant, and its readings of the clock are before and after that. So calls of
// two owners may overlap, and their true instants never do.
func turns(t *rapid.T) []record {
	var records []record
	now := hostTime(100)
	call := func() span {
		now += hostTime(rapid.IntRange(1, 5).Draw(t, "step"))
		return span{now - hostTime(rapid.IntRange(0, 9).Draw(t, "before")), now + hostTime(rapid.IntRange(0, 9).Draw(t, "after"))}
	}
	for turn := range rapid.IntRange(1, 6).Draw(t, "turns") {
		session := byte(rapid.IntRange(1, 3).Draw(t, "session"))
		for range rapid.IntRange(1, 4).Draw(t, "operations") {
			r := record{key: someKey, session: leasehold.Session{session}, generation: leasehold.Generation(turn + 1), check: call()}
			if rapid.Bool().Draw(t, "held") {
				r.held = call()
			}
			records = append(records, r)
		}
	}
	return records
}

func TestOracleIsBounded(t *testing.T) {
	o := newOracle(3)
	for i := range hostTime(100) {
		r := seen(byte(i), leasehold.Generation(i+1), 10*i+1, 10*i+2)
		r.key = leasehold.Key(i % 5)
		o.observe(r)
	}
	for key, known := range o.keys {
		if len(known) > maxTenures {
			t.Errorf("key %v: %d tenures", key, len(known))
		}
	}
	if v := o.judge(); len(o.keys) != 3 || v.unjudged != 40 || v.first != "" {
		t.Errorf("%d keys, %+v", len(o.keys), v)
	}
	// What is remembered is the latest: the key's last owner, long gone, comes back.
	late := seen(95, 96, 10*95+1, 10*95+2, 2000, 2001)
	late.key = 0
	o.observe(late)
	newer := seen(1, 200, 1500, 1501)
	newer.key = 0
	o.observe(newer)
	if v := o.judge(); v.duals != 1 {
		t.Errorf("%d dual ownerships, want 1", v.duals)
	}
}
