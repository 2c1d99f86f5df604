package flease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

func (w *world) heard(id flease.Process, what flease.Notable) (flease.Notice, bool) {
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
		if n, ok := w.heard(1, flease.ClockStep); !ok || n.By != by {
			t.Errorf("set by %v: it says %+v, %t", by, n, ok)
		}
	}
}

// A computer that was suspended for less than epsilon has a wall clock that is
// right and a monotonic clock that is not.
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

// Drift is what no process notices by itself. Peers do.
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
			if n, ok := w.heard(id, flease.PeerClock); !ok || n.Peer != 3 || n.By.Abs() <= epsilon {
				t.Errorf("%v off: process %d says %+v, %t", by, id, n, ok)
			}
		}
		if _, ok := w.heard(3, flease.OwnClock); !ok {
			t.Errorf("%v off: process 3 does not find out that its clock is wrong", by)
		}
		w.acquire(1, "other")
		w.settle()
		w.wantHolder("other", 1)
		w.driftApart(3, -by)
		w.run(10 * time.Second)
		w.wantHolder("r", 3)
	}
}

// The holder's own clock turns out to be wrong: it drops what it has.
func TestHolderWithAWrongClock(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(3, "r")
	w.settle()
	w.driftApart(3, 3*epsilon)
	w.run(5 * time.Second)
	w.want(3, "r", flease.Lost)
}

// Two members' clocks run ahead together, as with one bad source of time, while
// the owner is cut off. Their wall clocks say that the lease is over; their
// monotonic clocks know better.
func TestWallClocksThatAgreeAndAreWrong(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	for w.believes(1, "r") {
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
		if w.believes(1, "r") && w.believes(2, "r") {
			t.Fatal("two believe in it")
		}
	}
	if w.members[2].off < 10*epsilon {
		t.Fatalf("the clocks have run ahead by %v only: this shows nothing", w.members[2].off)
	}
}

// A virtual machine that is taken back to a snapshot does not know what it has
// accepted since. Its monotonic clock goes on from then, and its wall clock is
// right: so it forgets the rest, too, under another name, and is silent.
func TestSnapshot(t *testing.T) {
	w := newWorld(t, 3)
	mb := w.members[2]
	before, at := mb.m.Clone(), w.now
	w.run(5 * time.Second)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3) // 2 is the only other who knows
	w.settle()
	w.wantHolder("r", 1)
	mb.m = before
	mb.fast -= w.now - at
	w.acquire(3, "r")
	for range 400 {
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.believes(1, "r") && w.believes(3, "r") {
			t.Fatal("two believe in it")
		}
		w.pass(100 * time.Millisecond)
	}
	w.wantHolder("r", 3)
	if _, ok := w.heard(2, flease.Ready); !ok {
		t.Error("it does not take part again")
	}
	for _, l := range w.mail {
		if l.e.From == 2 && l.e.Incarnation == mb.inc {
			t.Error("it speaks in the name of the one before")
		}
	}
}

// Who is set forward, or has slept, is silent for as long as after a start. What
// was wanted is still wanted, and what was being released is not confirmed.
func TestForgettingEverything(t *testing.T) {
	for name, strike := range map[string]func(*world){
		"step":  func(w *world) { w.members[1].off += 2 * epsilon },
		"sleep": func(w *world) { w.members[1].m.Slept(w.time(1)) },
	} {
		w := newWorld(t, 3)
		w.acquire(1, "held")
		w.acquire(1, "given up")
		w.acquire(2, "another's")
		w.settle()
		w.acquire(1, "another's")
		w.settle()
		w.release(1, "given up")
		w.mail = nil
		strike(w)
		w.pass(100 * time.Millisecond)
		w.want(1, "held", flease.Lost)
		w.want(1, "given up", flease.Unreachable)
		if w.members[1].m.Ready() || len(w.mail) > 0 || w.members[1].m.Size() != 1 {
			t.Errorf("%s: ready %t, it has sent %d letters and knows %d resources", name, w.members[1].m.Ready(), len(w.mail), w.members[1].m.Size())
		}
		w.members[1].off = 0
		w.release(2, "another's")
		w.run(30 * time.Second)
		w.wantHolder("another's", 1)
	}
}
