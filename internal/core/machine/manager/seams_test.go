package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// patched returns a leader whose owner a holds cells 0 to 5 under six generations, which exceeds the limit of
// seams.
func patched(t *testing.T) (*paperLeader, *plan, *paperOwner) {
	t.Helper()
	l, p := newMovingLeader(t, "a......", func(c *manager.Config) { c.Seams = 3 })
	a := l.mover("a")
	for _, owners := range []string{"aa.....", "aaa....", "aaaa...", "aaaaa..", "aaaaaa."} {
		p.give(owners)
		l.replan()
	}
	return l, p, a
}

// Adjacent leases of an owner become one when there are too many: they move from it to itself, and nothing is lost.
func TestSeamsAreMovedToOneself(t *testing.T) {
	l, _, a := patched(t)
	last := a.moving.last
	if len(last.Departures) != 1 || len(last.Arrivals) != 1 || last.Departures[0].Ticket != last.Arrivals[0].Ticket {
		t.Fatalf("its departures are %v, and its arrivals %v", last.Departures, last.Arrivals)
	}
	d := last.Departures[0]
	if d.Range != cell(0, 5) || d.To != a.holder || last.Arrivals[0].From != a.holder {
		t.Fatalf("its departures are %+v", d)
	}
	since, before := len(l.log), l.machine.Table().Len()
	a.moving.imports = []protocol.Import{{Ticket: d.Ticket, Range: d.Range, Since: last.Arrivals[0].Since}}
	a.completes(d)
	l.settle()
	a.moving.imports = nil
	a.stopsReporting()
	l.wantChanges(since, "moved")
	if after := l.machine.Table().Len(); after >= before-3 {
		t.Errorf("the table has %d ranges, and had %d", after, before)
	}
	_, e := l.machine.Table().At(d.Range.Start)
	if e.Holder != a.holder || e.Lost != 0 || a.leases[0].Range != d.Range {
		t.Errorf("the table has %+v, and a %v", e, a.leases)
	}
}

// If that fails the leases stay as they are, and there is a retry after a delay.
func TestSeamsAreTriedAgain(t *testing.T) {
	l, _, a := patched(t)
	since := len(l.log)
	for range 3 {
		if len(a.departures()) != 1 {
			t.Fatalf("its departures are %v", a.departures())
		}
		a.reports(a.departures()[0], protocol.MoveFailed)
		a.send()
		a.read()
		a.wantDepartures() // not at once
		a.stopsReporting()
		l.renew(20*time.Second, a)
	}
	l.wantChanges(since)
}

// At most one compaction runs at a time, and an owner with other moves is skipped.
func TestSeamsWait(t *testing.T) {
	l, p, a := patched(t)
	if n := l.machine.Sizes().Moves; n != 1 {
		t.Errorf("%d moves in progress", n)
	}
	d := a.departures()[0]
	a.reports(d, protocol.MoveFailed)
	a.send()
	l.mover("b")
	p.give("aaaaab.")
	l.replan()
	a.stopsReporting()
	l.renew(45*time.Second, l.owners...)
	a.wantDepartures(cell(5, 6))
}
