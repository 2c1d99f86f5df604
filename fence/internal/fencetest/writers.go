package fencetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// Writers of many generations at once, on one resource: what was accepted has
// rising generations, in the order in which it was written (I9). What was
// reported written is there, once, and what was refused is not.
func testManyWriters(t *testing.T, db Guarded) {
	const writers, writes = 8, 40
	var granted atomic.Uint64 // the last generation
	granted.Store(1)
	var mu sync.Mutex
	written, refused := make(map[string]bool), 0
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			g := leasehold.Generation(1)
			for n := range writes {
				if rng.IntN(4) == 0 { // it becomes the owner
					g = leasehold.Generation(granted.Add(1))
				}
				line := fmt.Sprintf("%d by writer %d, write %d", g, i, n)
				err := db.Append(t.Context(), "alice", g, line)
				mu.Lock()
				switch {
				case err == nil:
					written[line] = true
				case leasehold.KindOf(err) == leasehold.ErrStale, leasehold.KindOf(err) == leasehold.ErrUnavailable:
					WantKnown(t, err)
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(written) == 0 || refused == 0 {
		t.Errorf("%d written, %d refused: they were not many at once", len(written), refused)
	}
	wantRising(t, db.Lines(t, "alice"), written)
}

// wantRising wants lines that begin with rising generations, and all of those
// that were written and no others.
func wantRising(t *testing.T, lines []string, written map[string]bool) {
	t.Helper()
	var highest uint64
	for _, line := range lines {
		var g uint64
		if _, err := fmt.Sscan(line, &g); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if g < highest {
			t.Errorf("%q was written after generation %d", line, highest)
		}
		highest = max(highest, g)
		if !written[line] {
			t.Errorf("%q was refused, or is there twice", line)
		}
		delete(written, line)
	}
	for line := range written {
		t.Errorf("%q was written, and is not there", line)
	}
}
