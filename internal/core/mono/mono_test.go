package mono

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	first       Instant       = math.MinInt64
	maxDuration time.Duration = math.MaxInt64
	minDuration time.Duration = math.MinInt64
)

func TestAdd(t *testing.T) {
	for _, test := range []struct {
		i    Instant
		d    time.Duration
		want Instant
	}{
		{0, 0, 0},
		{0, time.Second, 1e9},
		{5, -7, -2},
		{Never - 1, 1, Never},
		{Never - 1, 2, Never},
		{Never - 1, maxDuration, Never},
		{1, maxDuration, Never},
		{Never, 0, Never},
		{Never, 1, Never},
		{Never, -time.Hour, Never},
		{Never, minDuration, Never},
		{first, -1, first},
		{first, minDuration, first},
		{-1, minDuration, first},
		{first, maxDuration, -1},
	} {
		if got := test.i.Add(test.d); got != test.want {
			t.Errorf("%d.Add(%d) = %d, want %d", test.i, test.d, got, test.want)
		}
	}
}

func TestSub(t *testing.T) {
	for _, test := range []struct {
		i, o Instant
		want time.Duration
	}{
		{0, 0, 0},
		{7, 5, 2},
		{5, 7, -2},
		{Never, Never, 0},
		{Never, 0, maxDuration},
		{Never, 5, maxDuration},
		{Never, -5, maxDuration}, // a negative origin must not turn a long wait into none
		{Never, first, maxDuration},
		{0, Never, minDuration},
		{5, Never, minDuration},
		{-5, Never, minDuration},
		{first, 1, minDuration},
		{first, first, 0},
		{1, first, maxDuration},
	} {
		if got := test.i.Sub(test.o); got != test.want {
			t.Errorf("%d.Sub(%d) = %d, want %d", test.i, test.o, got, test.want)
		}
	}
}

func TestAddIsExactOrSaturates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := drawInstant(t, "i")
		d := drawDuration(t, "d")
		exact := new(big.Int).Add(big.NewInt(int64(i)), big.NewInt(int64(d)))
		want := Instant(saturated(exact))
		if i == Never {
			want = Never
		}
		if got := i.Add(d); got != want {
			t.Fatalf("%d.Add(%d) = %d, want %d", i, d, got, want)
		}
	})
}

// TestAddAndSubAreOrdered checks the property that timers and expiry checks rely on: Add keeps the
// order of instants, and Sub has the sign of that order.
func TestAddAndSubAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, o := drawInstant(t, "i"), drawInstant(t, "o")
		d := drawDuration(t, "d")
		if i <= o && i.Add(d) > o.Add(d) {
			t.Fatalf("%d <= %d, but not after adding %d", i, o, d)
		}
		if diff := i.Sub(o); (diff > 0) != (i > o) || (diff < 0) != (i < o) {
			t.Fatalf("%d.Sub(%d) = %d", i, o, diff)
		}
		if i != Never && o != Never {
			exact := new(big.Int).Sub(big.NewInt(int64(i)), big.NewInt(int64(o)))
			if got, want := i.Sub(o), time.Duration(saturated(exact)); got != want {
				t.Fatalf("%d.Sub(%d) = %d, want %d", i, o, got, want)
			}
		}
	})
}

func TestString(t *testing.T) {
	for i, want := range map[Instant]string{
		0:                 "0.000s",
		1_234_567_890:     "1.235s",
		-1_500_000_000:    "-1.500s",
		Never:             "never",
		3_600_000_000_000: "3600.000s",
	} {
		if got := i.String(); got != want {
			t.Errorf("%d is formatted as %q, want %q", int64(i), got, want)
		}
	}
}

func TestStretch(t *testing.T) {
	for _, test := range []struct {
		drift Drift
		d     time.Duration
		want  time.Duration
	}{
		{1.2, 10 * time.Second, 12 * time.Second},
		{65.0 / 60, 60 * time.Second, 65 * time.Second}, // the example of the Centrifuge paper
		{1.2, 0, 0},
		{1.2, 1, 2}, // rounded up
		{1, 10 * time.Second, 10 * time.Second},
		{1.5, -time.Second, -time.Second},
		{1.2, maxDuration, maxDuration},
		{1, maxDuration, maxDuration},
		{1, maxDuration - 1, maxDuration - 1}, // not rounded to a float
		{2, 1 << 62, maxDuration},
		{1e30, time.Second, maxDuration},
		{Drift(math.Inf(1)), 1, maxDuration},
		{Drift(math.Inf(1)), 0, 0},

		// Invalid drifts. The wait must still not be too short.
		{0, time.Second, time.Second},
		{0.5, time.Second, time.Second},
		{-1, time.Second, time.Second},
		{Drift(math.NaN()), time.Second, time.Second},
		{Drift(math.Inf(-1)), time.Second, time.Second},
	} {
		if got := test.drift.Stretch(test.d); got != test.want {
			t.Errorf("Drift(%v).Stretch(%d) = %d, want %d", float64(test.drift), test.d, got, test.want)
		}
	}
}

// TestStretchOutlastsTheLease checks the inequality behind invariant I1. The owner starts counting
// no later than the manager, and its clock is slower by at most the drift. So when the manager has
// waited Stretch(d) on its clock, d has passed on the owner's.
func TestStretchOutlastsTheLease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drift := Drift(rapid.Float64Range(1, 4).Draw(t, "drift"))
		d := time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "d"))
		waited := new(big.Rat).SetInt64(int64(drift.Stretch(d)))
		ratio := new(big.Rat).SetFloat64(float64(drift))
		need := ratio.Mul(ratio, new(big.Rat).SetInt64(int64(d)))
		// float64 has a 53-bit mantissa: a product above 2^53 ns may be off by one.
		if waited.Add(waited, big.NewRat(1, 1)); waited.Cmp(need) < 0 {
			t.Fatalf("Drift(%v).Stretch(%d) = %d is too short", float64(drift), d, drift.Stretch(d))
		}
	})
}

func TestStretchNeverShortensAndIsOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drift := Drift(rapid.Float64().Draw(t, "drift"))
		short, long := drawDuration(t, "short"), drawDuration(t, "long")
		if short > long {
			short, long = long, short
		}
		if drift.Stretch(short) < short || drift.Stretch(short) > drift.Stretch(long) {
			t.Fatalf("Drift(%v): Stretch(%d) = %d, Stretch(%d) = %d", float64(drift),
				short, drift.Stretch(short), long, drift.Stretch(long))
		}
	})
}

func saturated(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func drawInstant(t *rapid.T, label string) Instant {
	return Instant(drawInt64(t, label))
}

func drawDuration(t *rapid.T, label string) time.Duration {
	return time.Duration(drawInt64(t, label))
}

// drawInt64 draws numbers that are often at or next to the limits.
func drawInt64(t *rapid.T, label string) int64 {
	return rapid.OneOf(
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}),
		rapid.Int64(),
	).Draw(t, label)
}
