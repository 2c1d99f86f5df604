package fleasenet

import (
	"testing"

	"pgregory.net/rapid"
)

// The window agrees with a set of all received numbers.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		had := make(map[uint64]bool)
		newest := rapid.SampledFrom([]uint64{0, 1, 63, 1 << 40, 1<<64 - 1 - 8*windowSize}).Draw(t, "start")
		if newest > 0 {
			w.mark(newest)
			had[newest] = true
		}
		step := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-70, 130), rapid.Int64Range(-2*windowSize, 2*windowSize))
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			n := newest + uint64(step.Draw(t, "step"))
			if int64(n-newest) < 0 && n > newest {
				n = 0 // not below 1
			}
			want := n != 0 && !had[n] && (n > newest || newest-n < windowSize)
			if got := w.isNew(n); got != want {
				t.Fatalf("%d is new: %t, want %t; the newest is %d", n, got, want, newest)
			}
			if want && newest < 1<<64-1-4*windowSize {
				w.mark(n)
				had[n] = true
				newest = max(newest, n)
			}
		}
	})
}

func TestWindowSize(t *testing.T) {
	if windowSize < 2048 {
		t.Errorf("the window has %d packets, want at least 2048", windowSize)
	}
}
