package flease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

func (w *world) notice(id flease.Process, what flease.Notable) (flease.Notice, bool) {
	for _, n := range w.members[id].notices {
		if n.What == what {
			return n, true
		}
	}
	return flease.Notice{}, false
}

func TestClockStepDropsLeases(t *testing.T) {
	for _, by := range []time.Duration{2 * epsilon, -2 * epsilon} {
		w := newWorld(t, 3)
		w.acquire(1, "r")
		w.settle()
		w.members[1].off += by
		w.pass(100 * time.Millisecond)
		w.want(1, "r", flease.Lost)
		if n, ok := w.notice(1, flease.ClockStep); !ok || n.By != by {
			t.Errorf("set by %v: notice %+v, %t", by, n, ok)
		}
	}
}

// After a suspension shorter than epsilon the wall clock is right, and the monotonic clock is not.
func TestSleepDropsLeases(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	w.members[1].m.Slept(w.time(1))
	w.collect(1)
	w.want(1, "r", flease.Lost)
}

func TestSlewingIsNoStep(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	for range 100 {
		w.members[1].off += epsilon / 200
		w.members[2].off -= epsilon / 200
		w.run(time.Second)
		w.wantHolder("r", 1)
	}
}

// driftApart moves a wall clock in steps that its own process does not detect. Its peers do.
func (w *world) driftApart(id flease.Process, by time.Duration) {
	for range 10 {
		w.members[id].off += by / 10
		w.members[id].m.Advance(w.time(id))
		w.collect(id)
	}
}

func TestPeerWithAWrongClockIsIgnored(t *testing.T) {
	for _, by := range []time.Duration{3 * epsilon, -3 * epsilon} {
		w := newWorld(t, 3)
		w.driftApart(3, by)
		w.acquire(3, "r")
		w.run(5 * time.Second)
		w.wantHolder("r")
		for _, id := range []flease.Process{1, 2} {
			if n, ok := w.notice(id, flease.PeerClock); !ok || n.Peer != 3 || n.By.Abs() <= epsilon {
				t.Errorf("%v off: notice of process %d: %+v, %t", by, id, n, ok)
			}
		}
		if _, ok := w.notice(3, flease.OwnClock); !ok {
			t.Errorf("%v off: process 3 does not detect that its clock is wrong", by)
		}
		w.acquire(1, "other")
		w.settle()
		w.wantHolder("other", 1)
		w.driftApart(3, -by)
		w.run(10 * time.Second)
		w.wantHolder("r", 3)
	}
}

// A holder that detects that its own clock is wrong drops its leases.
func TestHolderWithAWrongClock(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(3, "r")
	w.settle()
	w.driftApart(3, 3*epsilon)
	w.run(5 * time.Second)
	w.want(3, "r", flease.Lost)
}

// Two members' clocks run ahead together, as with a common bad time source, while the owner is
// partitioned. The lease has ended by their wall clocks, but not by their monotonic clocks.
func TestWallClocksThatAgreeAndAreWrong(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	for w.holds(1, "r") {
		w.driftApart(2, 2*epsilon)
		w.driftApart(3, 2*epsilon)
		w.pass(100 * time.Millisecond)
		w.try(2, "r")
		var rest []letter
		for _, l := range w.mail {
			if l.to != 1 && l.e.From != 1 {
				rest = append(rest, l)
			}
		}
		w.mail = rest
		w.settle()
		if w.holds(1, "r") && w.holds(2, "r") {
			t.Fatal("two processes hold it")
		}
	}
	if w.members[2].off < 10*epsilon {
		t.Fatalf("the clocks have run ahead by %v only: this proves nothing", w.members[2].off)
	}
}

// A virtual machine that is restored from a snapshot has lost what it accepted since. Its monotonic
// clock continues from the snapshot, and its wall clock is right: so it drops its other state too,
// takes a new incarnation, and is silent.
func TestSnapshot(t *testing.T) {
	w := newWorld(t, 3)
	mb := w.members[2]
	before, at := mb.m.Clone(), w.now
	w.run(5 * time.Second)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3) // 2 is the only other member with the lease
	w.settle()
	w.wantHolder("r", 1)
	mb.m = before
	mb.fast -= w.now - at
	w.acquire(3, "r")
	for range 400 {
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.holds(1, "r") && w.holds(3, "r") {
			t.Fatal("two processes hold it")
		}
		w.pass(100 * time.Millisecond)
	}
	w.wantHolder("r", 3)
	if _, ok := w.notice(2, flease.Ready); !ok {
		t.Error("the process does not participate again")
	}
	for _, l := range w.mail {
		if l.e.From == 2 && l.e.Incarnation == mb.inc {
			t.Error("it sends with the earlier incarnation")
		}
	}
}

// After a forward step or a sleep a process is silent for as long as after a start. Its bids
// continue, and its releases are not confirmed.
func TestStepAndSleepDropAllState(t *testing.T) {
	for name, strike := range map[string]func(*world){
		"step":  func(w *world) { w.members[1].off += 2 * epsilon },
		"sleep": func(w *world) { w.members[1].m.Slept(w.time(1)) },
	} {
		w := newWorld(t, 3)
		w.acquire(1, "held")
		w.acquire(1, "released")
		w.acquire(2, "other")
		w.settle()
		w.acquire(1, "other")
		w.settle()
		w.release(1, "released")
		w.mail = nil
		strike(w)
		w.pass(100 * time.Millisecond)
		w.want(1, "held", flease.Lost)
		w.want(1, "released", flease.Unreachable)
		if w.members[1].m.Ready() || len(w.mail) > 0 || w.members[1].m.Size() != 1 {
			t.Errorf("%s: ready %t, %d letters, %d resources", name, w.members[1].m.Ready(), len(w.mail), w.members[1].m.Size())
		}
		w.members[1].off = 0
		w.release(2, "other")
		w.run(30 * time.Second)
		w.wantHolder("other", 1)
	}
}
