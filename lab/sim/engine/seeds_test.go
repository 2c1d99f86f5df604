package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Results are yielded in the order of their seeds.
func TestInOrder(t *testing.T) {
	last := make(chan struct{})
	run := func(seed uint64) uint64 {
		switch seed {
		case 7:
			<-last // the first ends last
		case 9:
			close(last)
		}
		return seed * 2
	}
	got := slices.Collect(inOrder(t.Context(), 7, 3, 3, run))
	if want := []uint64{14, 16, 18}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestStopEarly(t *testing.T) {
	var running atomic.Int32
	run := func(seed uint64) uint64 {
		running.Add(1)
		defer running.Add(-1)
		return seed
	}
	for seed := range inOrder(t.Context(), 1, 1_000_000, 4, run) {
		if seed == 5 {
			break
		}
	}
	if n := running.Load(); n != 0 {
		t.Errorf("%d are still running", n)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for range inOrder(ctx, 1, 1_000_000, 2, func(seed uint64) uint64 { return seed }) {
		if n++; n == 10 {
			cancel()
		}
	}
	if n < 10 || n == 1_000_000 {
		t.Errorf("%d results, want some more than 10", n)
	}
}
