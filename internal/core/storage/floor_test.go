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

// Where numbers go on is above those before; above all that was given out since, however often they have
// gone on elsewhere, if clocks are right; and small enough for languages that have 53 bits for a number.
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
		for range rapid.IntRange(1, 5).Draw(t, "restores of the same backup") {
			later := rapid.Int64Range(now+1, now+(end-start)/5).Draw(t, "restored")
			given += rapid.Uint64Range(0, uint64(later-now)*1_000_000).Draw(t, "given out until then")
			now = later
			on := storage.Above(known, storage.Clock(now), term())
			if on <= given && storage.Clock(now) > known {
				t.Fatalf("it goes on at %d, and %d was given out", on, given)
			}
			given = on
		}
	})
	for _, wall := range []int64{0, -1, math.MinInt64, math.MaxInt64, 1 << 33} {
		if got := storage.Clock(wall); got != 0 {
			t.Errorf("a clock that says %d stands for %d", wall, got)
		}
	}
	if got := storage.Clock(end); got > 1<<53 {
		t.Errorf("in 2240 it is %d", got)
	}
}

// Two terms go on at different numbers from the same backup.
func TestForgettable(t *testing.T) {
	if a, b := storage.Forgettable(7), storage.Forgettable(8); b-a != 1<<20 || a < 1<<40 {
		t.Errorf("%d in term 7, %d in term 8", a, b)
	}
}

func TestBatchWithABaseLast(t *testing.T) {
	base := table.New().Rebased(50, false, nil)
	if got := (&storage.Batch{Prev: 7, Base: base}).Last(); got != 50 {
		t.Errorf("it ends at %d, want 50", got)
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
		{clock + 1000, 5, clock, true},     // as many as were given out in a moment
		{clock + 1100<<20, 5, clock, true}, // by a manager whose clock was 1,100 s ahead
		{clock + 1<<47, 5, clock, true},    // or years
		{clock + 1<<48, 5, clock, false},   // or more than that
		{clock + 1<<48, clock + 1<<47, clock, true},
		{1 << 40, 5, 0, true},
		{1<<48 + 5, 5, 0, false},
	} {
		if got := storage.Plausible(test.had, test.known, test.clock); got != test.want {
			t.Errorf("%d above %d, at %d: %t", test.had, test.known, test.clock, got)
		}
	}
}
