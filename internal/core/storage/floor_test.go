package storage_test

import (
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"pgregory.net/rapid"
)

// Above continues above n. With correct clocks it is also above all numbers assigned since, after
// any number of restores, and has at most 53 bits.
func TestAbove(t *testing.T) {
	start, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2240, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	rapid.Check(t, func(t *rapid.T) {
		term := func() leasehold.Term { return leasehold.Term(rapid.Uint64().Draw(t, "term")) }
		n, clock := rapid.Uint64Range(0, 1<<52).Draw(t, "n"), rapid.Uint64Range(0, 1<<53).Draw(t, "clock")
		if got := storage.Above(n, clock, term()); got <= n || got > max(clock, n+1<<41) {
			t.Fatalf("%d after %d at %d", got, n, clock)
		}
		known := rapid.Uint64Range(0, 1<<40).Draw(t, "in the backup")
		given, now := known, start
		for range rapid.IntRange(1, 5).Draw(t, "restores") {
			later := rapid.Int64Range(now+1, now+(end-start)/5).Draw(t, "restored")
			given += rapid.Uint64Range(0, uint64(later-now)*1_000_000).Draw(t, "assigned until then")
			now = later
			on := storage.Above(known, storage.Clock(now), term())
			if on <= given && storage.Clock(now) > known {
				t.Fatalf("continues at %d, and %d was assigned", on, given)
			}
			given = on
		}
	})
	for _, wall := range []int64{0, -1, math.MinInt64, math.MaxInt64, 1 << 33} {
		if got := storage.Clock(wall); got != 0 {
			t.Errorf("Clock(%d) = %d", wall, got)
		}
	}
	if got := storage.Clock(end); got > 1<<53 {
		t.Errorf("in 2240: %d", got)
	}
}

// A leader whose clock was ahead has taken over, and others with right clocks have led since. A backup from then on,
// restored under right clocks, continues above all numbers assigned since, although clocks have not passed them.
func TestFloorAfterClockAhead(t *testing.T) {
	const start = 1_800_000_000
	takeOver := func(last storage.Record, wall int64) storage.Record {
		next := last
		next.Term++
		next.At = wall
		next.Floor = storage.NextFloor(last, 0, wall, next.Term)
		return next
	}
	rapid.Check(t, func(t *rapid.T) {
		ahead, now := rapid.Int64Range(1, 1<<20).Draw(t, "ahead"), int64(start)
		rec := takeOver(storage.Record{Term: 1, At: now - 100}, now+ahead)
		pass := func() {
			now += rapid.Int64Range(10, 1<<20).Draw(t, "seconds until the next")
			if rapid.Bool().Draw(t, "renewed until then") {
				rec.At = now - 5
			}
		}
		pass()
		rec.At = now
		for range rapid.IntRange(0, 2).Draw(t, "takeovers before the backup") {
			pass()
			rec = takeOver(rec, now)
		}
		backup, given := rec, rec.Floor
		for range rapid.IntRange(1, 3).Draw(t, "takeovers until the restore") {
			pass()
			rec = takeOver(rec, now)
			given = max(given, rec.Floor)
		}
		pass()
		if restored := takeOver(backup, now); restored.Floor <= given {
			t.Fatalf("continues at %d, and %d was assigned", restored.Floor, given)
		}
	})
}

// A clock that was decades behind, or years ahead, moves no number by as much.
func TestFloorAfterWildClock(t *testing.T) {
	const wall = 1_800_000_000
	for _, at := range []int64{1, wall / 2, wall + 1<<29} {
		if got, want := storage.NextFloor(storage.Record{Term: 3, At: at, Floor: storage.Clock(wall - 9)}, 0, wall, 4), storage.Clock(wall); got != want {
			t.Errorf("after a record of %d the floor is %d, want %d", at, got, want)
		}
	}
	if got := storage.NextFloor(storage.Record{Term: 3, At: wall - 9}, storage.Clock(wall+50), wall, 4); got <= storage.Clock(wall+50) {
		t.Errorf("the floor %d is not above that of a record that the store has lost", got)
	}
}

// TestNextFloorAtItsLimits: without a clock the floor is above that of the last record's clock. A record without a clock,
// or one that is too far ahead, moves no floor ahead.
func TestNextFloorAtItsLimits(t *testing.T) {
	const wall, longest = 1_800_000_000, 1 << 42
	written := storage.Clock(wall - 9)
	for _, test := range []struct {
		name string
		last storage.Record
		wall int64
		want uint64
	}{
		{"no clock", storage.Record{At: wall - 9, Floor: 5}, 0, written + storage.Forgettable(4)},
		{"no clock of the last record", storage.Record{Floor: 1000}, wall, storage.Clock(wall)},
		{"just not too far ahead", storage.Record{At: wall - 9, Floor: written + longest - 1}, wall, storage.Clock(wall) + longest - 1},
		{"too far ahead", storage.Record{At: wall - 9, Floor: written + longest}, wall, written + longest + storage.Forgettable(4)},
	} {
		if got := storage.NextFloor(test.last, 0, test.wall, 4); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// TestAboveAtItsLimits: which of the three rules applies.
func TestAboveAtItsLimits(t *testing.T) {
	const wall, term = 1_800_000_000, 7
	clock := storage.Clock(wall)
	if clock != wall<<20 {
		t.Fatalf("Clock(%d) = %d", wall, clock)
	}
	if got := storage.Clock(1); got != 1<<20 {
		t.Errorf("Clock(1) = %d", got)
	}
	for _, test := range []struct{ n, clock, want uint64 }{
		{clock - 1, clock, clock},
		{clock, clock, clock + 1<<21},
		{clock + 1<<30 - 1, clock, clock + 1<<30 - 1 + 1<<21},
		{clock + 1<<30, clock, clock + 1<<30 + storage.Forgettable(term)}, // the clock was set back
		{5, 0, 5 + storage.Forgettable(term)},
	} {
		if got := storage.Above(test.n, test.clock, term); got != test.want {
			t.Errorf("Above(%d, %d) = %d, want %d", test.n, test.clock, got, test.want)
		}
	}
}

// Two terms continue the same backup at different numbers.
func TestForgettable(t *testing.T) {
	if a, b := storage.Forgettable(7), storage.Forgettable(8); b-a != 1<<20 || a < 1<<40 {
		t.Errorf("%d in term 7, %d in term 8", a, b)
	}
	if a, b := storage.Forgettable(7), storage.Forgettable(7+1<<20); a != b {
		t.Errorf("%d in term 7, %d a million terms later: terms are milliseconds, and numbers have 53 bits", a, b)
	}
}

func TestBatchWithABaseLast(t *testing.T) {
	base := table.New().Rebased(50, false, nil)
	if got := (&storage.Batch{Prev: 7, Base: base}).Last(); got != 50 {
		t.Errorf("the batch ends at %d, want 50", got)
	}
}

func TestPlausible(t *testing.T) {
	const clock = 1_800_000_000 << 20
	for _, test := range []struct {
		had, known, clock uint64
		want              bool
	}{
		{6, 5, clock, true},
		{clock, 5, clock, true},
		{clock + 1000, 5, clock, true},     // assigned in a fraction of a second
		{clock + 1100<<20, 5, clock, true}, // by a manager whose clock was 1,100 s ahead
		{clock + 1<<47, 5, clock, true},    // years ahead
		{clock + 1<<48, 5, clock, false},   // too far ahead
		{clock + 1<<48, clock + 1<<47, clock, true},
		{1 << 40, 5, 0, true},
		{1<<48 + 5, 5, 0, false},
	} {
		if got := storage.Plausible(test.had, test.known, test.clock); got != test.want {
			t.Errorf("Plausible(%d, %d, %d) = %t", test.had, test.known, test.clock, got)
		}
	}
}
