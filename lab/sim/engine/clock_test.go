package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

func TestClock(t *testing.T) {
	const start = int64(1e9)
	for _, r := range []engine.Rate{912_872, engine.TrueRate, 1_104_000, 400_001, 300_000, 3_000_000} {
		c := engine.NewClock[mono.Instant](start, 77, r)
		for _, d := range []time.Duration{0, 1, time.Millisecond + 1, 12 * time.Second, 30 * time.Hour} {
			want := mono.Instant(77 + float64(d)*float64(r)/1e6)
			if got := c.At(start + int64(d)); math.Abs(float64(got-want)) > 1e-9*float64(want)+1 {
				t.Errorf("rate %d after %v: shows %v, want %v", r, d, got, want)
			}
			i := mono.Instant(77 + d)
			at := c.When(i)
			if c.At(at) < i || at > c.Since() && c.At(at-1) >= i {
				t.Errorf("rate %d: When of %v is %d, but the reading is %v then and %v just before", r, i, at, c.At(at), c.At(at-1))
			}
		}
	}
	c := engine.NewClock[mono.Instant](0, 5, 1_095_445)
	c.Run(1e9, 0)
	if c.At(5e9) != c.At(1e9) || c.When(c.At(1e9)+1) != math.MaxInt64 || c.When(mono.Never) != math.MaxInt64 {
		t.Error("a clock with rate 0 does not stand still")
	}
	c.Run(5e9, 912_872)
	if c.At(6e9) <= c.At(5e9) {
		t.Error("a stopped clock does not continue")
	}
	c.Set(6e9, 3)
	if c.At(6e9) != 3 || c.At(7e9) != 3+912_872_000 || c.Rate() != 912_872 {
		t.Errorf("a clock that was set reads %v, and %v a second later", c.At(6e9), c.At(7e9))
	}
}
