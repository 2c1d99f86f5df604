package flease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// These play proposer 1 by hand, against acceptor 2.

func round(n uint32) flease.Ballot {
	return flease.Ballot{Interval: 1 << 40, Round: n, Process: 1}
}

// say says something to process 2 in the name of process 1, and returns what it
// answers: no kind if it says nothing, or only that it is there.
func (w *world) say(msg flease.Message, change ...func(*flease.Envelope)) flease.Message {
	e := flease.Envelope{From: 1, Incarnation: w.members[1].inc, To: w.members[2].inc, Sent: w.time(1).Wall}
	for _, c := range change {
		c(&e)
	}
	if msg.Kind == flease.KindRead || msg.Kind == flease.KindInsist {
		msg.Name = "r"
	} else {
		msg.To = w.ref
	}
	w.members[2].m.Receive(w.time(2), &e, []flease.Message{msg})
	w.collect(2)
	mail := w.mail
	w.mail = nil
	for _, l := range mail {
		if len(l.msgs) > 0 {
			if l.msgs[0].Kind == flease.KindPromise {
				w.ref = l.msgs[0].From
			}
			return l.msgs[0]
		}
	}
	return flease.Message{}
}

func (w *world) wantKind(what string, got flease.Message, want flease.Kind) {
	w.t.Helper()
	if got.Kind != want {
		w.t.Fatalf("%s: answer of kind %d, want %d: %+v", what, got.Kind, want, got)
	}
}

func (w *world) leaseOf(owner flease.Process, serial uint64) flease.Value {
	return flease.Value{Owner: owner, Incarnation: w.members[owner].inc, Serial: serial, Fence: 1, Until: w.time(owner).Wall.Add(lease), Left: lease}
}

// Nothing is accepted in a round that was not promised, not even in a later one:
// the promise may have been given by someone with the same name who has forgotten.
func TestNoWriteWithoutAPromise(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	w.wantKind("a write in a later round", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(6), Value: w.leaseOf(1, 1)}), flease.KindReject)
	w.wantKind("a write in that round", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)}), flease.KindAccept)
	w.wantKind("an earlier read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(4)}), flease.KindReject)
}

// What is meant for another incarnation is void, and answered with no more than
// that we are there.
func TestMessagesForAnotherAreVoid(t *testing.T) {
	w := newWorld(t, 3)
	other := func(e *flease.Envelope) { e.To += 1000 }
	w.wantKind("a read for another", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)}, other), 0)
	w.wantKind("an earlier read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(4)}), flease.KindPromise)
	w.wantKind("a write for another", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(4), Value: w.leaseOf(1, 1)}, other), 0)
	if v := w.say(flease.Message{Kind: flease.KindRead, Ballot: round(6)}).Value; v.Owner != 0 {
		t.Errorf("it has stored %+v", v)
	}
}

// What comes late from a process that is no more does not make us forget the one
// that took its place; and that one, when it is there, is believed.
func TestAnotherIncarnationMustProveThatItLives(t *testing.T) {
	w := newWorld(t, 3)
	before := w.members[1].inc
	w.wantKind("the present one", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(1)}), flease.KindPromise)
	dead := func(e *flease.Envelope) { e.Incarnation = 4711 }
	w.wantKind("one that we know nothing of", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(2)}, dead), 0)
	w.wantKind("the present one again", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(3)}), flease.KindPromise)
	w.start(1)
	w.run(13 * time.Second)
	w.acquire(1, "other")
	w.run(time.Second)
	w.wantHolder("other", 1)
	late := func(e *flease.Envelope) { e.Incarnation = before }
	w.wantKind("the one before", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(9)}, late), 0)
}

// A renewal that comes late does not replace the one after it.
func TestOlderRenewalChangesNothing(t *testing.T) {
	w := newWorld(t, 3)
	w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
	older := w.leaseOf(1, 1)
	w.now += time.Second
	newer := w.leaseOf(1, 2)
	w.wantKind("the newer", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: newer}), flease.KindAccept)
	w.wantKind("the older", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: older}), 0)
	if v := w.say(flease.Message{Kind: flease.KindRead, Ballot: round(6)}).Value; v.Serial != 2 || v.Until != newer.Until {
		t.Errorf("it has stored %+v, want the newer", v)
	}
}

// Whoever tells of someone else's lease does not prolong it.
func TestTellingDoesNotProlong(t *testing.T) {
	w := newWorld(t, 3)
	w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
	v := w.leaseOf(3, 1)
	w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: v})
	w.pass(4 * time.Second)
	before := w.say(flease.Message{Kind: flease.KindInsist, Ballot: round(6)}).Value.Left
	w.wantKind("telling", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(6), Value: v}), flease.KindAccept) // its Left is as old as the lease
	after := w.say(flease.Message{Kind: flease.KindInsist, Ballot: round(7)}).Value.Left
	if before >= lease || after > before {
		t.Errorf("%v are left before it is told, and %v after", before, after)
	}
}

// A member that answers after it was decided what to write is asked to accept that
// only if its answer would have made no difference.
func TestLatePromise(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(w *world, m *flease.Message)
		asked bool
	}{
		{"knows nothing", func(*world, *flease.Message) {}, true},
		{"knows a lease", func(w *world, m *flease.Message) { m.Value, m.Written = w.leaseOf(2, 1), flease.Ballot{Round: 1} }, false},
		{"knows a fence that nobody has had", func(_ *world, m *flease.Message) { m.Fence = 1 << 60 }, true},
		{"knows a lease that is over", func(w *world, m *flease.Message) {
			m.Value, m.Written = w.leaseOf(2, 1), flease.Ballot{Round: 1}
			m.Value.Left, m.Value.Until = 0, m.Value.Until.Add(-2*lease)
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.acquire(1, "r")
			late := w.take(flease.KindRead, 3)
			w.settle()
			w.wantHolder("r", 1)
			w.deliver(late[0])
			promise := w.take(flease.KindPromise, 1)[0]
			test.spoil(w, &promise.msgs[0])
			w.deliver(promise)
			w.mail = nil
			for len(w.mail) == 0 { // until it renews
				w.pass(10 * time.Millisecond)
			}
			if asked := len(w.take(flease.KindWrite, 3)) > 0; asked != test.asked {
				t.Errorf("it is asked to accept: %t, want %t", asked, test.asked)
			}
		})
	}
}

// What is over on a monotonic clock that races is not forgotten before it is over
// on the wall clock too.
func TestNothingIsForgottenTooEarly(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3)
	w.settle()
	w.wantHolder("r", 1)
	cut := func() {
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
	}
	for range 40 {
		w.members[2].fast += 1900 * time.Millisecond
		w.pass(100 * time.Millisecond)
		cut()
		w.settle()
	}
	w.acquire(3, "r")
	cut()
	w.settle()
	w.wantHolder("r", 1)
}

// No value is stored whose end is so far away that its owner's clock must be wrong:
// all would wait for it.
func TestFarEndsAreNotStored(t *testing.T) {
	w := newWorld(t, 3)
	w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
	far := w.leaseOf(1, 1)
	far.Until = far.Until.Add(2*epsilon + 1)
	w.wantKind("too far", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: far}), 0)
	far.Until--
	w.wantKind("just not too far", w.say(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: far}), flease.KindAccept)
}

// A promise is to one incarnation of a process: what the one before has sent, and
// the one after would not know of, is not accepted in its name.
func TestPromiseIsToAnIncarnation(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	write := flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)}
	w.now += time.Millisecond
	next := func(e *flease.Envelope) { e.Incarnation, e.Echo = 4711, w.time(2).Wall }
	w.wantKind("a write of its successor", w.say(write, next), flease.KindReject)
}

// What was promised and is forgotten is not promised again, to anyone.
func TestForgettingKeepsAFloor(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	w.run(time.Minute)
	if n := w.members[2].m.Size(); n > 0 {
		t.Fatalf("%d resources are known after a minute", n)
	}
	w.wantKind("the same read", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindReject)
	w.wantKind("an earlier one", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(4)}), flease.KindReject)
	w.wantKind("a later one", w.say(flease.Message{Kind: flease.KindRead, Ballot: round(6)}), flease.KindPromise)
}
