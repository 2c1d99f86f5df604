package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// parts lets an owner say that it wants to leave.
func (o *paperOwner) parts() {
	o.moving.parting = true
	o.say()
	o.leader.settle()
}

// Who parts hears that it need not wait when all that it had is with others, and
// recorded; at once, for its users wait for it.
func TestPartingIsIdleWhenAllIsRecorded(t *testing.T) {
	l, p := newMovingLeader(t, "ab", func(c *manager.Config) { c.Moves = 1 })
	a, b := l.mover("a"), l.mover("b")
	p.give("aaab")
	l.rethink()
	p.give("bbbb")
	a.parts()
	if l.noted(manager.NoteParting) != 1 || a.moving.last.Idle {
		t.Errorf("it is noted %d times, and idle is %t", l.noted(manager.NoteParting), a.moving.last.Idle)
	}
	l.holdUp = true
	for len(a.leases) > 0 {
		if len(a.departures()) != 1 {
			t.Fatalf("with %v left it is to send %v", a.leases, a.departures())
		}
		a.completes(a.departures()[0])
		l.settle()
		if a.moving.last.Idle {
			t.Fatalf("it need not wait, although it holds %v and nothing is recorded", a.leases)
		}
		l.commit()
		l.settle()
		a.forgets()
	}
	if !a.moving.last.Idle {
		t.Error("it is not told that nothing is left")
	}
	if b.moving.last.Idle {
		t.Error("who stays is told that it need not wait")
	}
}

// Who has nobody to give anything to need not wait, and goes on until it leaves.
func TestLastOwnerParts(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	a := l.mover("a")
	a.parts()
	if !a.moving.last.Idle || len(a.leases) != 1 {
		t.Errorf("idle is %t, and it has %v", a.moving.last.Idle, a.leases)
	}
	l.renew(2*time.Minute, a)
	l.wantHolder(0, "a", "until it leaves")
	l.mover("b") // someone comes after all
	p.give("b")
	l.rethink()
	a.wantDepartures(leasehold.All)
	if a.moving.last.Idle {
		t.Error("it need not wait for that")
	}
}

// Who parts is given nothing any more, not even if nobody else is left: it may be
// gone before it knows.
func TestPartingNeverGetsAnything(t *testing.T) {
	l, p := newMovingLeader(t, "ab")
	a, b := l.mover("a"), l.mover("b")
	p.give("bb")
	a.parts()
	b.leave()
	l.settle()
	for _, m := range p.last().Members {
		t.Errorf("the policy may still count on %s", m.Owner)
	}
}

// State that was confirmed by who parts may be the only copy. As long as its
// source could say that it has let go, nobody says that there is nothing to wait
// for.
func TestIdleWaitsForWhoCountsOnAnImport(t *testing.T) {
	for _, c := range []struct {
		name  string
		then  func(l *paperLeader, a *paperOwner, d protocol.Departure)
		idles bool
	}{
		{"its source has stopped", func(l *paperLeader, a *paperOwner, d protocol.Departure) {
			a.reports(d, protocol.MoveStopped)
			a.say()
		}, false},
		{"its source has not heard that it is over", func(*paperLeader, *paperOwner, protocol.Departure) {}, false},
		{"its source has given up, and knows", func(l *paperLeader, a *paperOwner, d protocol.Departure) {
			a.reports(d, protocol.MoveFailed)
			a.say()
			l.settle()
			a.forgets()
			a.say()
			l.settle()
		}, true},
		{"its source is gone", func(l *paperLeader, a *paperOwner, d protocol.Departure) { a.leave() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, p, a, b, d := begunMove(t)
			b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
			p.give("aaa") // b parts, and gets nothing
			b.moving.parting = true
			b.say() // a is not told before it speaks
			b.read()
			c.then(l, a, d)
			for range 2 {
				b.say()
				b.read()
			}
			if b.moving.last.Idle != c.idles {
				t.Errorf("that it need not wait is %t", b.moving.last.Idle)
			}
		})
	}
}

// A source that a new leader has heard may still be about to let go: it gives up
// what that one does not speak of when it hears it.
func TestIdleWaitsForSourcesToGiveUp(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
	b.moving.parting = true
	a.reports(d, protocol.MoveStopped)
	p.give("aaa")
	next := l.inherit(p, a, b)
	a.returns() // it has not heard an answer to its second word yet
	b.returns()
	b.say()
	if b.read().Idle {
		t.Error("it need not wait, and a may have let go by now")
	}
	next.settle()
	a.forgets()
	a.say()
	next.settle()
	if !b.moving.last.Idle {
		t.Error("a has given up, and b still waits")
	}
}

// A new leader does not know what sources have to say before they have said it.
func TestIdleWaitsForSourcesToReturn(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
	b.moving.parting = true
	a.reports(d, protocol.MoveDone)
	a.letsGo(d.Range)
	next := l.inherit(p, a, b)
	p.give("aaa")
	b.returns()
	b.say()
	if b.read().Idle {
		t.Fatal("it need not wait, and a has not been heard")
	}
	recorded := len(next.log)
	a.returns()
	next.settle()
	if got := next.changesSince(recorded); len(got) != 1 || got[0] != "moved" {
		t.Errorf("what is recorded is %v", got)
	}
	b.wantDepartures(d.Range) // it goes back, since b wants to leave
}
