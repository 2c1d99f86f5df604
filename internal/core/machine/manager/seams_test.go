package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// patched returns a leader whose owner a holds cells 0 to 5 under six
// generations, which is more than a table should have.
func patched(t *testing.T) (*paperLeader, *plan, *paperOwner) {
	t.Helper()
	l, p := newMovingLeader(t, "a......", func(c *manager.Config) { c.Seams = 3 })
	a := l.mover("a")
	for _, owners := range []string{"aa.....", "aaa....", "aaaa...", "aaaaa..", "aaaaaa."} {
		p.give(owners)
		l.rethink()
	}
	return l, p, a
}

// Leases of an owner that lie side by side become one when there are too many:
// they are moved from it to itself, and nothing is lost.
func TestSeamsAreMovedToOneself(t *testing.T) {
	l, _, a := patched(t)
	last := a.moving.last
	if len(last.Departures) != 1 || len(last.Arrivals) != 1 || last.Departures[0].Ticket != last.Arrivals[0].Ticket {
		t.Fatalf("it is told to send %v, and to expect %v", last.Departures, last.Arrivals)
	}
	d := last.Departures[0]
	if d.Range != cell(0, 5) || d.To != a.holder || last.Arrivals[0].From != a.holder {
		t.Fatalf("it is told to send %+v", d)
	}
	since, before := len(l.log), l.machine.Table().Len()
	a.moving.imports = []protocol.Import{{Ticket: d.Ticket, Range: d.Range, Since: last.Arrivals[0].Since}}
	a.completes(d)
	l.settle()
	a.moving.imports = nil
	a.forgets()
	l.wantChanges(since, "moved")
	if after := l.machine.Table().Len(); after >= before-3 {
		t.Errorf("the table has %d ranges, and had %d", after, before)
	}
	_, e := l.machine.Table().At(d.Range.Start)
	if e.Holder != a.holder || e.Lost != 0 || a.leases[0].Range != d.Range {
		t.Errorf("the table has %+v, and a %v", e, a.leases)
	}
}

// If that fails the leases stay as they are, and it is tried again later.
func TestSeamsAreTriedAgain(t *testing.T) {
	l, _, a := patched(t)
	since := len(l.log)
	for range 3 {
		if len(a.departures()) != 1 {
			t.Fatalf("it is told to send %v", a.departures())
		}
		a.reports(a.departures()[0], protocol.MoveFailed)
		a.say()
		a.read()
		a.wantDepartures() // not at once
		a.forgets()
		l.renew(20*time.Second, a)
	}
	l.wantChanges(since)
}

// One such effort at a time is enough, and an owner that is about to send
// something else is left alone.
func TestSeamsWait(t *testing.T) {
	l, p, a := patched(t)
	if n := l.machine.Sizes().Moves; n != 1 {
		t.Errorf("%d moves are under way", n)
	}
	d := a.departures()[0]
	a.reports(d, protocol.MoveFailed)
	a.say()
	l.mover("b")
	p.give("aaaaab.")
	l.rethink()
	a.forgets()
	l.renew(45*time.Second, l.owners...)
	a.wantDepartures(cell(5, 6))
}
