package flease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// An acceptor has dropped a resource, and reused its ref for another one. A late message about the
// first does not affect the second.
func TestRefOfAnotherResource(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	old := w.ref
	w.pass(3 * lease)
	if n := w.members[2].m.Size(); n != 0 {
		t.Fatalf("there are still %d resources", n)
	}
	w.acquire(3, "other")
	w.settle()
	w.wantHolder("other", 3)
	before := w.members[2].m.Look(w.time(2), "other")
	w.ref = old
	got := w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)})
	w.wantKind("a write where another resource is", got, flease.KindReject)
	if after := w.members[2].m.Look(w.time(2), "other"); after != before {
		t.Errorf("the other resource has changed: %+v, was %+v", after, before)
	}
	w.ref = 1 << 30
	w.wantKind("a write where nothing is", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)}), flease.KindReject)
}

// A proposer does not count a reply about another resource, whatever its ref.
func TestAnswerAboutAnotherResource(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "a")
	reads := w.take(flease.KindRead, 2, 3)
	w.acquire(1, "b")
	w.mail = nil
	for _, l := range reads {
		w.deliver(l)
	}
	for i := range w.mail {
		w.mail[i].msgs = slices.Clone(w.mail[i].msgs)
		w.mail[i].msgs[0].To++ // the ref of b
	}
	w.settle()
	w.wantHolder("a")
	w.wantHolder("b")
}

// An unused cell is dropped after the time for which a lease may matter, and not much later.
func TestDropsInTime(t *testing.T) {
	w := newWorld(t, 3)
	w.run(3 * lease) // resources of newWorld
	w.acquire(1, "r")
	w.run(5 * time.Second)
	w.release(1, "r")
	w.settle()
	const linger = 13 * time.Second // 1.2 leases and epsilon
	w.run(linger - time.Second)
	if n := w.members[2].m.Size(); n != 1 {
		t.Errorf("%d resources a second before the cell may be dropped, want 1", n)
	}
	w.run(3 * time.Second)
	for id, mb := range w.members {
		if n := mb.m.Size(); n != 0 {
			t.Errorf("process %d has %d resources two seconds after the cell may be dropped", id, n)
		}
	}
}

// If replies take long, messages are not retransmitted before a reply can be expected: otherwise
// retransmissions would exhaust all processes.
func TestRetransmissionFollowsRTT(t *testing.T) {
	w := newWorld(t, 3)
	sent := func(name string) (n int) {
		w.acquire(1, name)
		for w.last(1, name).What != flease.Acquired {
			mail := w.mail
			w.mail = nil
			w.pass(400 * time.Millisecond)
			for _, l := range mail {
				if l.e.From == 1 {
					n++
				}
				w.deliver(l)
			}
		}
		w.release(1, name)
		w.settle()
		return n
	}
	first, last := sent("first"), 0
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		last = sent(name)
	}
	if last != 4 || first <= last {
		t.Errorf("%d messages at first, and %d with a measured round-trip time; want 4, two for each of the others", first, last)
	}
}
