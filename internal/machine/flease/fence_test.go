package flease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// tenure acquires and releases, while no time passes, and returns the fence; 0 if
// it would have to wait.
func (w *world) tenure(id flease.Process, name string) uint64 {
	w.t.Helper()
	w.acquire(id, name)
	w.settle()
	n := w.last(id, name)
	if n.What != flease.Acquired {
		return 0
	}
	w.release(id, name)
	w.settle()
	w.want(id, name, flease.Released)
	w.members[id].notices = nil
	return n.Lease.Fence
}

// However fast tenures follow each other, and although all forget, fences rise.
func TestFencesDoNotOutrunTheClock(t *testing.T) {
	w := newWorld(t, 3)
	var last uint64
	for range 3 { // sprints as fast as possible
		for range 10_000 {
			fence := w.tenure(1, "r")
			if fence == 0 {
				break
			}
			if fence <= last {
				t.Fatalf("fence %d after %d", fence, last)
			}
			last = fence
		}
		if ahead := time.Duration(last)*time.Millisecond - w.now; ahead > epsilon || ahead < epsilon-time.Second/100 {
			t.Fatalf("fences are %v ahead of the clock when they have to wait, want %v", ahead, epsilon)
		}
		w.run(200 * time.Millisecond)
		w.wantHolder("r", 1) // it did not have to wait for long
		if fence := w.want(1, "r", flease.Acquired).Lease.Fence; fence <= last {
			t.Fatalf("fence %d after %d", fence, last)
		}
		w.release(1, "r")
		w.settle()
		w.members[1].notices = nil
	}
	for _, id := range w.cfg.Peers {
		w.start(id)
		w.members[id].off = -epsilon / 2 // and those who were slow are asked first
	}
	w.run(14 * time.Second)
	if fence := w.tenure(2, "r"); fence <= last {
		t.Errorf("fence %d after all have started anew, and %d before", fence, last)
	}
}

// A fence that is further ahead than clocks that are good can bring it about was
// made by one that was wrong. Nobody waits for that.
func TestNobodyWaitsForAClockThatWasWrong(t *testing.T) {
	w := newWorld(t, 3)
	for _, id := range w.cfg.Peers {
		w.members[id].off = time.Hour
	}
	w.run(14 * time.Second)
	before := w.tenure(1, "r")
	for _, id := range w.cfg.Peers {
		w.members[id].off = 0
	}
	w.run(14 * time.Second)
	if after := w.tenure(2, "r"); after != before+1 {
		t.Errorf("fence %d after %d: want the next, at once", after, before)
	}
}
