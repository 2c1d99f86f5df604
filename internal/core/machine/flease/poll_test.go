package flease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// These are about those who ask for what another has: they must get an answer, and
// take nothing away.

// An acceptor that knows of a lease in force promises nothing to others than its
// owner, unless they insist.
func TestWhatIsHeldIsNotPromised(t *testing.T) {
	w := newWorld(t, 3)
	read := func(n uint32) flease.Message { return flease.Message{Kind: flease.KindRead, Ballot: round(n)} }
	w.say(read(5))
	w.wantKind("a lease of another", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(3, 1)}), flease.KindAccept)
	got := w.say(read(6))
	w.wantKind("a read", got, flease.KindHeld)
	if v := got.Value; v.Owner != 3 || v.Until != w.leaseOf(3, 1).Until || v.Left <= 0 || v.Left > lease+1 {
		t.Errorf("it says that %+v has it", v)
	}
	w.wantKind("a read in a round that is over", w.say(read(1)), flease.KindHeld)
	renewed := w.leaseOf(3, 2)
	w.wantKind("what was promised before", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: renewed}), flease.KindAccept)
	w.wantKind("insistence", w.say(flease.Message{Kind: flease.KindInsist, Ballot: round(7)}), flease.KindPromise)
	w.wantKind("what was promised before that", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: renewed}), flease.KindReject)
	own := w.leaseOf(1, 3)
	w.wantKind("the asker's own", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(7), Value: own}), flease.KindAccept)
	w.wantKind("a read of the owner", w.say(read(8)), flease.KindPromise)
}

// What is over on one clock is promised, so that no clock that stands still keeps
// others from asking for ever. Whether it is over is for them to say.
func TestWhatMayBeOverIsPromised(t *testing.T) {
	for name, pass := range map[string]func(*world){
		"wall": func(w *world) {
			w.driftApart(2, lease/2+epsilon) // in small steps
			w.driftApart(2, lease/2+epsilon)
			w.members[1].off = w.members[2].off
		},
		"monotonic": func(w *world) { w.members[2].fast += 13 * time.Second },
	} {
		w := newWorld(t, 3)
		w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
		w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(3, 1)})
		pass(w)
		w.wantKind(name, w.say(flease.Message{Kind: flease.KindRead, Ballot: round(6)}), flease.KindPromise)
	}
}

// However often others try, a renewal stays one message to each and one back, and
// each of them is answered after one round trip.
func TestTriesTakeNothingAway(t *testing.T) {
	w := newWorld(t, 5)
	w.acquire(1, "r")
	w.settle()
	for range 1000 {
		for _, id := range w.cfg.Peers[1:] {
			w.try(id, "r")
			reads := w.take(flease.KindRead, w.cfg.Peers...)
			if len(reads) != 4 || len(w.mail) > 0 {
				t.Fatalf("%d reads and %d other letters, want 4 and none", len(reads), len(w.mail))
			}
			for _, l := range reads {
				w.deliver(l)
			}
			for _, l := range w.take(flease.KindHeld, id) {
				w.deliver(l)
			}
			if n := w.want(id, "r", flease.Refused); n.Holder != 1 || n.Until < w.time(id).Wall {
				t.Fatalf("%d is told that %d has it until %v at %v", id, n.Holder, n.Until, w.time(id).Wall)
			}
			if len(w.mail) > 0 {
				t.Fatalf("more is said: %+v", w.mail)
			}
			w.members[id].notices = nil
		}
		w.pass(20 * time.Millisecond)
		if reads := w.take(flease.KindRead, w.cfg.Peers...); len(reads) > 0 {
			t.Fatal("the holder begins another round")
		}
		w.settle()
		w.wantHolder("r", 1)
	}
}

// The end that is told is the earliest that was reported: more than a majority
// knows is not known.
func TestTheEarliestEndIsTold(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	first := w.want(1, "r", flease.Acquired).Lease.Until.Wall
	for len(w.mail) == 0 {
		w.pass(10 * time.Millisecond)
	}
	w.take(flease.KindWrite, 3) // it does not hear of the renewal
	w.settle()
	if w.want(1, "r", flease.Renewed).Lease.Until.Wall <= first {
		t.Fatal("it was not renewed")
	}
	w.try(3, "r")
	w.settle()
	if n := w.want(3, "r", flease.Refused); n.Until != first {
		t.Errorf("it is told %v, want %v, which all know", n.Until, first)
	}
}

// Where too few know of a lease for a majority to say so, a second round makes
// them: soon, if some are silent.
func TestFewKnow(t *testing.T) {
	w := newWorld(t, 5)
	w.acquire(1, "r")
	w.take(flease.KindRead, 4, 5)
	w.settle()
	w.wantHolder("r", 1)
	began := w.now
	w.try(4, "r")
	for w.last(4, "r").What == 0 && w.now-began < 5*time.Second {
		w.settleWithout(2)
		w.pass(10 * time.Millisecond)
	}
	if n := w.want(4, "r", flease.Refused); n.Holder != 1 || w.now-began > 500*time.Millisecond {
		t.Errorf("it is told of %d after %v", n.Holder, w.now-began)
	}
	for range 200 {
		w.pass(100 * time.Millisecond)
		w.settleWithout(2)
		w.wantHolder("r", 1)
	}
}

// settleWithout delivers all mail but what is for a process, or from it.
func (w *world) settleWithout(dead flease.Process) {
	w.t.Helper()
	for i := 0; len(w.mail) > 0; i++ {
		if i > 10000 {
			w.t.Fatal("they never stop talking")
		}
		l := w.mail[0]
		w.mail = w.mail[1:]
		if l.to != dead && l.e.From != dead {
			w.deliver(l)
		}
	}
}

// A try, or a release, that others are always faster than ends with an error that
// says so, and soon.
func TestContentionIsBounded(t *testing.T) {
	w := newWorld(t, 3)
	began := w.now
	w.try(1, "r")
	for w.last(1, "r").What == 0 {
		if w.now-began > 10*time.Second {
			t.Fatal("it goes on for ever")
		}
		mail := w.mail
		w.mail = nil
		for _, l := range mail {
			asked, ref := l.msgs[0].Ballot, l.msgs[0].From
			e := flease.Envelope{From: l.to, Incarnation: l.e.To, To: l.e.Incarnation, Sent: w.time(l.to).Wall}
			w.deliver(letter{1, e, []flease.Message{{Kind: flease.KindReject, To: ref, Ballot: asked, Written: asked}}})
		}
		w.pass(10 * time.Millisecond)
	}
	w.want(1, "r", flease.Disputed)
	if took := w.now - began; took > 4*time.Second {
		t.Errorf("it takes %v", took)
	}
}
