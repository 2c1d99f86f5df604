package flease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// tenure acquires and releases, without any time passing, and returns the fence; 0 if the bid would
// have to wait.
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

// Fences increase however fast tenures follow each other, also after a loss of all memories.
func TestFencesDoNotOutrunTheClock(t *testing.T) {
	w := newWorld(t, 3)
	var last uint64
	for range 3 { // tenures as fast as possible
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
		w.wantHolder("r", 1) // the wait was short
		if fence := w.want(1, "r", flease.Acquired).Lease.Fence; fence <= last {
			t.Fatalf("fence %d after %d", fence, last)
		}
		w.release(1, "r")
		w.settle()
		w.members[1].notices = nil
	}
	for _, id := range w.cfg.Peers {
		w.start(id)
		w.members[id].off = -epsilon / 2 // and slow clocks come first
	}
	w.run(14 * time.Second)
	if fence := w.tenure(2, "r"); fence <= last {
		t.Errorf("fence %d after all have restarted, and %d before", fence, last)
	}
}

// A fence that is further ahead than correct clocks allow was made with a wrong one. No process
// waits for the clocks to reach it.
func TestNoWaitForAFenceOfAWrongClock(t *testing.T) {
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

// A fence that was lost here and is known elsewhere can be exceeded on request: at once, however
// far ahead of the clock, and also by other members that read from the one that was raised.
func TestFencesAreRaised(t *testing.T) {
	w := newWorld(t, 3)
	w.run(14 * time.Second)
	before := w.tenure(1, "r")
	known := before + 1<<27
	m := w.members[1]
	if err := m.m.Raise(w.time(1), "r", known); err != nil {
		t.Fatal(err)
	}
	if fence := w.tenure(1, "r"); fence != known+1 {
		t.Errorf("the next fence is %d, want %d", fence, known+1)
	}
	if fence := w.tenure(2, "r"); fence != known+2 {
		t.Errorf("the next fence of another process is %d, want %d: a majority has it", fence, known+2)
	}
	if err := m.m.Raise(w.time(1), "r", before); err != nil {
		t.Fatal(err)
	}
	w.run(time.Minute) // the cell is dropped, all but the fence
	if fence := w.tenure(3, "r"); fence != known+3 {
		t.Errorf("after a minute the fence is %d, want %d", fence, known+3)
	}
}

// A member whose clock is years ahead, even from its start, blocks no lease and makes no fence;
// when its clock is right it participates.
func TestOneClockYearsAhead(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := newWorld(t, 3)
		first := w.tenure(1, "r")
		w.members[3].off = 5 * 365 * 24 * time.Hour
		if restarted {
			w.start(3)
		}
		w.run(30 * time.Second)
		second := w.tenure(2, "r")
		w.acquire(3, "r")
		w.run(30 * time.Second)
		if n := w.last(3, "r"); n.What == flease.Acquired {
			t.Errorf("restarted %t: it has the lease, with fence %d", restarted, n.Lease.Fence)
		}
		w.members[3].off = 0
		if restarted {
			w.start(3)
		} else {
			w.release(3, "r")
		}
		w.run(60 * time.Second)
		w.acquire(3, "r")
		w.run(20 * time.Second) // the others detect that its clock is right
		third := w.want(3, "r", flease.Renewed).Lease.Fence
		if now := uint64(w.now / time.Millisecond); first >= second || second >= third || third > now+uint64(epsilon/time.Millisecond) {
			t.Errorf("restarted %t: fences %d, %d and %d at %d: want them to rise, and not to run ahead", restarted, first, second, third, now)
		}
	}
}
