package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// parts makes an owner ask to leave.
func (o *paperOwner) parts() {
	o.moving.parting = true
	o.send()
	o.leader.settle()
}

// An owner that leaves is idle when all its ranges are with others, and recorded. It is notified at once, because
// its callers wait for that.
func TestPartingIsIdleWhenAllIsRecorded(t *testing.T) {
	l, p := newMovingLeader(t, "ab", func(c *manager.Config) { c.Moves = 1 })
	a, b := l.mover("a"), l.mover("b")
	p.give("aaab")
	l.replan()
	p.give("bbbb")
	a.parts()
	if l.noted(manager.NoteParting) != 1 || a.moving.last.Idle {
		t.Errorf("noted %d times, idle %t", l.noted(manager.NoteParting), a.moving.last.Idle)
	}
	l.holdUp = true
	for len(a.leases) > 0 {
		if len(a.departures()) != 1 {
			t.Fatalf("it has %v left, and is to send %v", a.leases, a.departures())
		}
		a.completes(a.departures()[0])
		l.settle()
		if a.moving.last.Idle {
			t.Fatalf("it is idle, although it holds %v and nothing is recorded", a.leases)
		}
		l.commit()
		l.settle()
		a.stopsReporting()
	}
	if !a.moving.last.Idle {
		t.Error("it is not notified that it is idle")
	}
	if b.moving.last.Idle {
		t.Error("an owner that stays is idle")
	}
}

// The last owner is idle at once, and keeps its leases until it leaves.
func TestLastOwnerParts(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	a := l.mover("a")
	a.parts()
	if !a.moving.last.Idle || len(a.leases) != 1 {
		t.Errorf("idle is %t, and it has %v", a.moving.last.Idle, a.leases)
	}
	l.renew(2*time.Minute, a)
	l.wantHolder(0, "a", "until it leaves")
	l.mover("b") // another owner joins
	p.give("b")
	l.replan()
	a.wantDepartures(leasehold.All)
	if a.moving.last.Idle {
		t.Error("it is idle before the move to the new owner")
	}
}

// An owner that leaves gets no ranges, even if it is the last: it may leave before it receives them.
func TestPartingNeverGetsAnything(t *testing.T) {
	l, p := newMovingLeader(t, "ab")
	a, b := l.mover("a"), l.mover("b")
	p.give("bb")
	a.parts()
	b.leave()
	l.settle()
	for _, m := range p.last().Members {
		t.Errorf("the policy has %s as a member", m.Owner)
	}
}

// State that a leaving owner has imported may be the only copy. It is not idle while the source could report that
// it has released the range.
func TestIdleWaitsForSourcesOfImports(t *testing.T) {
	for _, c := range []struct {
		name  string
		then  func(l *paperLeader, a *paperOwner, d protocol.Departure)
		idles bool
	}{
		{"its source has stopped", func(l *paperLeader, a *paperOwner, d protocol.Departure) {
			a.reports(d, protocol.MoveStopped)
			a.send()
		}, false},
		{"its source has not acknowledged the end", func(*paperLeader, *paperOwner, protocol.Departure) {}, false},
		{"its source has given up, and acknowledged the end", func(l *paperLeader, a *paperOwner, d protocol.Departure) {
			a.reports(d, protocol.MoveFailed)
			a.send()
			l.settle()
			a.stopsReporting()
			a.send()
			l.settle()
		}, true},
		{"its source is gone", func(l *paperLeader, a *paperOwner, d protocol.Departure) { a.leave() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, p, a, b, d := begunMove(t)
			b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
			p.give("aaa") // b is leaving, and gets nothing
			b.moving.parting = true
			b.send() // a gets no message before its next request
			b.read()
			c.then(l, a, d)
			for range 2 {
				b.send()
				b.read()
			}
			if b.moving.last.Idle != c.idles {
				t.Errorf("idle is %t", b.moving.last.Idle)
			}
		})
	}
}

// A source that a new leader has had a request from may still release the range: it gives up a move that the leader
// does not list only when it receives that message.
func TestIdleWaitsForSourcesToGiveUp(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
	b.moving.parting = true
	a.reports(d, protocol.MoveStopped)
	p.give("aaa")
	next := l.inherit(p, a, b)
	a.returns() // the reply to its second request is unread
	b.returns()
	b.send()
	if b.read().Idle {
		t.Error("it is idle, and a may have released the range")
	}
	next.settle()
	a.stopsReporting()
	a.send()
	next.settle()
	if !b.moving.last.Idle {
		t.Error("a has given up, and b still waits")
	}
}

// A new leader has no move reports before the sources send requests.
func TestIdleWaitsForSourcesToReturn(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
	b.moving.parting = true
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	next := l.inherit(p, a, b)
	p.give("aaa")
	b.returns()
	b.send()
	if b.read().Idle {
		t.Fatal("it is idle before the first request of a")
	}
	recorded := len(next.log)
	a.returns()
	next.settle()
	if got := next.changesSince(recorded); len(got) != 1 || got[0] != "moved" {
		t.Errorf("recorded changes: %v", got)
	}
	b.wantDepartures(d.Range) // it moves back, since b is leaving
}
