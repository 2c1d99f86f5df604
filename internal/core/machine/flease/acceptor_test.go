package flease_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// In these tests proposer 1 is simulated by hand, against acceptor 2.

func round(n uint32) flease.Ballot {
	return flease.Ballot{Interval: 1 << 40, Round: n, Process: 1}
}

// sendTo2 sends a message to process 2 in the name of process 1, and returns its reply: no kind if
// there is none, or only a greeting.
func (w *world) sendTo2(msg flease.Message, change ...func(*flease.Envelope)) flease.Message {
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
		w.t.Fatalf("%s: reply of kind %d, want %d: %+v", what, got.Kind, want, got)
	}
}

func (w *world) leaseOf(owner flease.Process, serial uint64) flease.Value {
	return flease.Value{Owner: owner, Incarnation: w.members[owner].inc, Serial: serial, Fence: 1, Until: w.time(owner).Wall.Add(lease), Left: lease}
}

// A write is not accepted in a round that was not promised, not even in a later one: the promise
// may have been made by an earlier incarnation that lost its memory.
func TestNoWriteWithoutAPromise(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	w.wantKind("a write in a later round", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(6), Value: w.leaseOf(1, 1)}), flease.KindReject)
	w.wantKind("a write in that round", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)}), flease.KindAccept)
	w.wantKind("an earlier read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(4)}), flease.KindReject)
}

// A message to another incarnation is void, and is only answered by a greeting.
func TestMessagesForAnotherAreVoid(t *testing.T) {
	w := newWorld(t, 3)
	other := func(e *flease.Envelope) { e.To += 1000 }
	w.wantKind("a read for another", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)}, other), 0)
	w.wantKind("an earlier read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(4)}), flease.KindPromise)
	w.wantKind("a write for another", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(4), Value: w.leaseOf(1, 1)}, other), 0)
	if v := w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(6)}).Value; v.Owner != 0 {
		t.Errorf("the acceptor has stored %+v", v)
	}
}

// A late message of a dead process does not replace the present incarnation. A new incarnation that
// is alive is accepted.
func TestNewIncarnationMustProveThatItIsAlive(t *testing.T) {
	w := newWorld(t, 3)
	before := w.members[1].inc
	w.wantKind("the present one", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(1)}), flease.KindPromise)
	dead := func(e *flease.Envelope) { e.Incarnation = 4711 }
	w.wantKind("an unknown incarnation", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(2)}, dead), 0)
	w.wantKind("the present one again", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(3)}), flease.KindPromise)
	w.start(1)
	w.run(13 * time.Second)
	w.acquire(1, "other")
	w.run(time.Second)
	w.wantHolder("other", 1)
	late := func(e *flease.Envelope) { e.Incarnation = before }
	w.wantKind("the earlier incarnation", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(9)}, late), 0)
}

// A late renewal does not replace a newer one.
func TestOlderRenewalChangesNothing(t *testing.T) {
	w := newWorld(t, 3)
	w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
	older := w.leaseOf(1, 1)
	w.now += time.Second
	newer := w.leaseOf(1, 2)
	w.wantKind("the newer", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: newer}), flease.KindAccept)
	w.wantKind("the older", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: older}), 0)
	if v := w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(6)}).Value; v.Serial != 2 || v.Until != newer.Until {
		t.Errorf("the acceptor has stored %+v, want the newer", v)
	}
}

// A report of another process's lease does not extend it.
func TestReportDoesNotExtend(t *testing.T) {
	w := newWorld(t, 3)
	w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
	v := w.leaseOf(3, 1)
	w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: v})
	w.pass(4 * time.Second)
	before := w.sendTo2(flease.Message{Kind: flease.KindInsist, Ballot: round(6)}).Value.Left
	w.wantKind("a report", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(6), Value: v}), flease.KindAccept) // its Left is as old as the lease
	after := w.sendTo2(flease.Message{Kind: flease.KindInsist, Ballot: round(7)}).Value.Left
	if before >= lease || after > before {
		t.Errorf("%v are left before the report, and %v after", before, after)
	}
}

// A member that replies after the value was chosen gets the write only if its reply would not have
// changed the value.
func TestLatePromise(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(w *world, m *flease.Message)
		sent  bool
	}{
		{"has no value", func(*world, *flease.Message) {}, true},
		{"has a lease", func(w *world, m *flease.Message) { m.Value, m.Written = w.leaseOf(2, 1), flease.Ballot{Round: 1} }, false},
		{"has a fence without a tenure", func(_ *world, m *flease.Message) { m.Fence = 1 << 60 }, true},
		{"has an expired lease", func(w *world, m *flease.Message) {
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
			for len(w.mail) == 0 { // until the renewal
				w.pass(10 * time.Millisecond)
			}
			if sent := len(w.take(flease.KindWrite, 3)) > 0; sent != test.sent {
				t.Errorf("write sent: %t, want %t", sent, test.sent)
			}
		})
	}
}

// A value that has expired on a fast monotonic clock is not dropped before it has expired on the
// wall clock too.
func TestNothingIsDroppedTooEarly(t *testing.T) {
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

// A value is not stored if its end is so late that its owner's clock must be wrong: it would block
// all processes.
func TestFarEndsAreNotStored(t *testing.T) {
	w := newWorld(t, 3)
	w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)})
	far := w.leaseOf(1, 1)
	far.Until = far.Until.Add(2*epsilon + 1)
	w.wantKind("too far", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: far}), 0)
	far.Until--
	w.wantKind("just not too far", w.sendTo2(flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: far}), flease.KindAccept)
}

// A promise is to one incarnation of a process: a write of another incarnation is not accepted.
func TestPromiseIsToAnIncarnation(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	write := flease.Message{Kind: flease.KindWrite, Ballot: round(5), Value: w.leaseOf(1, 1)}
	w.now += time.Millisecond
	next := func(e *flease.Envelope) { e.Incarnation, e.Echo = 4711, w.time(2).Wall }
	w.wantKind("a write of its successor", w.sendTo2(write, next), flease.KindReject)
}

// After a cell was dropped, its promised ballots are not promised again.
func TestDroppedCellKeepsAFloor(t *testing.T) {
	w := newWorld(t, 3)
	w.wantKind("a read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindPromise)
	w.run(time.Minute)
	if n := w.members[2].m.Size(); n > 0 {
		t.Fatalf("%d resources are known after a minute", n)
	}
	w.wantKind("the same read", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(5)}), flease.KindReject)
	w.wantKind("an earlier one", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(4)}), flease.KindReject)
	w.wantKind("a later one", w.sendTo2(flease.Message{Kind: flease.KindRead, Ballot: round(6)}), flease.KindPromise)
}
