package flease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// These tests are about queries for a lease of another process: they must be answered, and must not
// take the lease away.

// An acceptor with a lease in force makes promises only to its owner, unless others insist.
func TestHeldLeaseIsNotPromised(t *testing.T) {
	w := newWorld(t, 3)
	read := func(n uint32) flease.Message { return flease.Message{Kind: flease.KindRead, Ballot: round(n)} }
	w.sendTo2(read(5))
	w.wantKind("a lease of another", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(3, 1)}), flease.KindAccept)
	got := w.sendTo2(read(6))
	w.wantKind("a read", got, flease.KindHeld)
	if v := got.Value; v.Owner != 3 || v.Until != w.leaseOf(3, 1).Until || v.Left <= 0 || v.Left > lease+1 {
		t.Errorf("reported holder %+v", v)
	}
	w.wantKind("a read in an old round", w.sendTo2(read(1)), flease.KindHeld)
	renewed := w.leaseOf(3, 2)
	w.wantKind("a write in the promised round", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: renewed}), flease.KindAccept)
	w.wantKind("insistence", w.sendTo2(flease.Message{Kind: flease.KindInsist, Ballot: round(7)}), flease.KindPromise)
	w.wantKind("a write in the round promised before", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: renewed}), flease.KindReject)
	own := w.leaseOf(1, 3)
	w.wantKind("a write in the round of the insist", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(7), Value: own}), flease.KindAccept)
	w.wantKind("a read of the owner", w.sendTo2(read(8)), flease.KindPromise)
}

// A lease that has ended on one clock is promised, so that a stopped clock does not block queries
// for ever. The proposer decides whether it has ended.
func TestPossiblyExpiredLeaseIsPromised(t *testing.T) {
	for name, pass := range map[string]func(*world){
		"wall": func(w *world) {
			w.driftApart(2, lease/2+epsilon) // in small steps
			w.driftApart(2, lease/2+epsilon)
			w.members[1].off = w.members[2].off
		},
		"monotonic": func(w *world) { w.members[2].fast += 13 * time.Second },
	} {
		w := newWorld(t, 3)
		w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
		w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(3, 1)})
		pass(w)
		w.wantKind(name, w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(6)}), flease.KindPromise)
	}
}

// With any number of tries, a renewal remains one message to each member and one reply, and each
// try gets its result after one round trip.
func TestTriesDoNotDisturbTheHolder(t *testing.T) {
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
				t.Fatalf("result of process %d: holder %d until %v at %v", id, n.Holder, n.Until, w.time(id).Wall)
			}
			if len(w.mail) > 0 {
				t.Fatalf("more messages: %+v", w.mail)
			}
			w.members[id].notices = nil
		}
		w.pass(20 * time.Millisecond)
		if reads := w.take(flease.KindRead, w.cfg.Peers...); len(reads) > 0 {
			t.Fatal("the holder has begun another round")
		}
		w.settle()
		w.wantHolder("r", 1)
	}
}

// The reported end is the earliest one in the replies, which a majority has.
func TestEarliestEndIsReported(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	first := w.want(1, "r", flease.Acquired).Lease.Until.Wall
	for len(w.mail) == 0 {
		w.pass(10 * time.Millisecond)
	}
	w.take(flease.KindWrite, 3) // it does not receive the renewal
	w.settle()
	if w.want(1, "r", flease.Renewed).Lease.Until.Wall <= first {
		t.Fatal("the lease was not renewed")
	}
	w.try(3, "r")
	w.settle()
	if n := w.want(3, "r", flease.Refused); n.Until != first {
		t.Errorf("reported end %v, want %v, which all members have", n.Until, first)
	}
}

// If fewer than a majority have a lease, a second round writes it: soon, if some members do not
// reply.
func TestFewMembersHaveTheLease(t *testing.T) {
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
		t.Errorf("holder %d after %v", n.Holder, w.now-began)
	}
	for range 200 {
		w.pass(100 * time.Millisecond)
		w.settleWithout(2)
		w.wantHolder("r", 1)
	}
}

// settleWithout delivers all messages but those to or from a process.
func (w *world) settleWithout(dead flease.Process) {
	w.t.Helper()
	for i := 0; len(w.mail) > 0; i++ {
		if i > 10000 {
			w.t.Fatal("the processes never stop sending")
		}
		l := w.mail[0]
		w.mail = w.mail[1:]
		if l.to != dead && l.e.From != dead {
			w.deliver(l)
		}
	}
}

// A try, or a release, that repeatedly loses to others ends soon, with its own error.
func TestContentionIsBounded(t *testing.T) {
	w := newWorld(t, 3)
	began := w.now
	w.try(1, "r")
	for w.last(1, "r").What == 0 {
		if w.now-began > 10*time.Second {
			t.Fatal("the bid does not end")
		}
		mail := w.mail
		w.mail = nil
		for _, l := range mail {
			ballot, ref := l.msgs[0].Ballot, l.msgs[0].From
			e := flease.Envelope{From: l.to, Incarnation: l.e.To, To: l.e.Incarnation, Sent: w.time(l.to).Wall}
			w.deliver(letter{1, e, []flease.Message{{Kind: flease.KindReject, To: ref, Ballot: ballot, Written: ballot}}})
		}
		w.pass(10 * time.Millisecond)
	}
	w.want(1, "r", flease.Disputed)
	if took := w.now - began; took > 4*time.Second {
		t.Errorf("it takes %v", took)
	}
}
