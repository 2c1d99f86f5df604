package flease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// An acceptor has forgotten a resource, and keeps another one where it was. What
// comes late about the first is not taken for the second.
func TestRefOfAnotherResource(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	old := w.ref
	w.pass(3 * lease)
	if n := w.members[2].m.Size(); n != 0 {
		t.Fatalf("it still knows of %d resources", n)
	}
	w.acquire(3, "other")
	w.settle()
	w.wantHolder("other", 3)
	before := w.members[2].m.Look(w.time(2), "other")
	w.ref = old
	got := w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)})
	w.wantKind("a write where another resource is", got, flease.KindReject)
	if after := w.members[2].m.Look(w.time(2), "other"); after != before {
		t.Errorf("the other resource has changed: %+v, was %+v", after, before)
	}
	w.ref = 1 << 30
	w.wantKind("a write where nothing is", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)}), flease.KindReject)
}

// A proposer counts no answer that is about another resource, whatever it says
// where to find it.
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
		w.mail[i].msgs[0].To++ // where b is
	}
	w.settle()
	w.wantHolder("a")
	w.wantHolder("b")
}

// What is of no use any more is forgotten when nobody has asked for it for as long
// as a lease may matter, and not much later.
func TestForgetsInTime(t *testing.T) {
	w := newWorld(t, 3)
	w.run(3 * lease) // what newWorld left
	w.acquire(1, "r")
	w.run(5 * time.Second)
	w.release(1, "r")
	w.settle()
	const linger = 13 * time.Second // 1.2 leases and epsilon
	w.run(linger - time.Second)
	if n := w.members[2].m.Size(); n != 1 {
		t.Errorf("it knows of %d resources a second before it may forget, want 1", n)
	}
	w.run(3 * time.Second)
	for id, mb := range w.members {
		if n := mb.m.Size(); n != 0 {
			t.Errorf("process %d knows of %d resources two seconds after it may forget", id, n)
		}
	}
}

// When answers take long, questions are not asked again before they can have come:
// if everybody did, nobody would come to answer.
func TestPatience(t *testing.T) {
	w := newWorld(t, 3)
	asked := func(name string) (n int) {
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
	first, last := asked("first"), 0
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		last = asked(name)
	}
	if last != 4 || first <= last {
		t.Errorf("it has asked %d times, and %d times when it knew how long answers take; want 4, two for each of the others", first, last)
	}
}
