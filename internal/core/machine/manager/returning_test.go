package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// I1: an outage has given a more time, and its former deadline counts when another process has its name. If leases
// become longer, a message to a promises the longer time from a request that was accepted before: the
// former deadline moves out as well.
func TestLongerLeasesMoveFormerDeadlines(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	a.say()
	a.read()
	b.say()
	b.read()
	start := l.now
	l.advance(40 * time.Second) // nobody is heard
	b.say()                     // b returns: a gets more time, a.due is its former deadline
	b.read()
	l.reconfigure(longTiming())
	c := l.introduce("c") // a is told, unasked, to give something back
	l.advance(0)
	if len(a.unread) == 0 {
		t.Fatal("a is told nothing")
	}
	told := a.read() // a hears; its requests are lost
	if told.Timing != longTiming() || told.Echo != a.seq || len(told.Offers) == 0 {
		t.Fatalf("a is told %+v", told)
	}
	key := told.Offers[0].Range.Start
	session := a.holder.Session
	c.read()
	a2 := l.introduce("a") // another process with a's name
	for l.now < start.Add(100*time.Second) {
		l.advance(500 * time.Millisecond)
		for _, o := range []*paperOwner{b, c, a2} {
			o.say()
			o.read()
		}
		if _, e := l.machine.Table().At(key); e.Vacant() || e.Holder.Session != session {
			t.Fatalf("%v after a spoke last the table has %v for key %v, although a may act on generation %d for %v",
				l.now.Sub(start), e, key, told.Offers[0].Generation, told.Timing.Lease)
		}
	}
}

// I11: a session of the table whose name a later one has may be dead, and a message of it late. It does not end the
// leases of the owner that lives.
func TestLateMessageOfAGhost(t *testing.T) {
	old, owner := *poolHolder(0), *poolHolder(0)
	old.Session[0] = 'o'
	ra, rb := leasehold.Range{Limit: middle}, leasehold.Range{Start: middle}
	p := newPoolIn(t, 2, poolConfig(), &storage.State{Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: ra, Generation: 1, Holder: &old},
		{LSN: 2, Kind: table.Granted, Range: rb, Generation: 2, Holder: &owner},
	}})
	o := &player{holder: &owner, leases: []leasehold.Lease{{Range: rb, Generation: 2}}}
	p.until(time.Minute) // nobody is heard
	if _, e := p.machine.Table().At(middle); e.Vacant() {
		t.Fatal("the owner is expired")
	}
	// the old session's process is gone, and a message of it arrives late
	p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: poolNamespace, Holder: &old, Seq: 9, Term: 1, Heard: 5, Applied: 5, Leases: []leasehold.Lease{{Range: ra, Generation: 1}}}})
	p.settle()
	p.until(100 * time.Millisecond)
	p.players[owner.Session] = o
	p.claim(o)
	p.settle()
	if _, e := p.machine.Table().At(middle); e.Vacant() || e.Generation != 2 || e.Holder.Session != owner.Session {
		t.Errorf("the owner that returned 100 ms later has lost its lease: %v", e)
	}
}

func short(c *manager.Config) { c.Timing = shortTiming() }

// After a takeover no owner is heard for a minute. a returns and is stopped 100 ms later: it waits for b, which
// has the time of a lease to return, and can then take its range.
func TestLeavingWaitsForThoseThatMayReturn(t *testing.T) {
	ha := &table.Holder{Owner: "a", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	hb := &table.Holder{Owner: "b", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
	ra, rb := leasehold.Range{Limit: middle}, leasehold.Range{Start: middle}
	l := newPaperSuccessor(t, 2, &storage.State{Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: ra, Generation: 1, Holder: ha},
		{LSN: 2, Kind: table.Granted, Range: rb, Generation: 2, Holder: hb},
	}}, short)
	a := &paperOwner{leader: l, holder: ha, leases: []leasehold.Lease{{Range: ra, Generation: 1}}, moving: &moving{}}
	b := &paperOwner{leader: l, holder: hb, leases: []leasehold.Lease{{Range: rb, Generation: 2}}, moving: &moving{}}
	l.owners = []*paperOwner{a, b}
	l.advance(time.Minute)
	r := a.request()
	r.Suspended = true
	l.step(manager.Request{LeaseRequest: r})
	a.read()
	a.say()
	a.read()
	l.advance(100 * time.Millisecond)
	a.moving.parting = true
	a.say()
	l.advance(0)
	a.read()
	if a.moving.last.Idle {
		t.Error("a is told not to wait, although b has the time of a lease to return")
	}
	l.advance(200 * time.Millisecond)
	r = b.request()
	r.Suspended = true
	l.step(manager.Request{LeaseRequest: r})
	b.read()
	b.say()
	l.settle()
	l.advance(0)
	a.say()
	l.settle()
	if len(a.departures()) == 0 {
		t.Error("a has nothing to send to b")
	}
}

// An owner leaves beside one that has died, while a move to it or from it is under way. It waits for
// no longer than a lease.
func TestLeavingBesideASilentOwner(t *testing.T) {
	for _, dead := range []string{"target", "source"} {
		t.Run(dead, func(t *testing.T) {
			l, p := newMovingLeader(t, "ab", short)
			a, b := l.mover("a"), l.mover("b")
			for range 12 {
				l.advance(2 * time.Second)
				a.say()
				l.settle()
				b.say()
				l.settle()
			}
			if dead == "source" { // b sends to a, and dies
				p.give("aa")
				l.rethink()
				b.wantDepartures(cell(1, 0))
			}
			died := l.now
			b.unread = nil
			if dead == "target" {
				p.give("bb")
			}
			a.moving.parting = true
			a.say()
			for l.now < died.Add(10*time.Minute) && !a.moving.last.Idle {
				l.advance(time.Second)
				b.unread = nil
				if len(a.unread) > 0 {
					a.read()
				}
				for _, d := range a.departures() {
					a.reports(d, protocol.MoveCopying) // it makes no progress: the target does not answer
				}
				a.say()
				if len(a.unread) > 0 {
					a.read()
				}
			}
			if took := l.now.Sub(died); took > 2*shortTiming().Hold() {
				t.Errorf("idle %t after %v, want within two leases", a.moving.last.Idle, took)
			}
		})
	}
}

// State has come to a, and its source and the leader die. a wants to leave, and waits for the source for no
// longer than a lease.
func TestLeavingWithAnImport(t *testing.T) {
	ha := &table.Holder{Owner: "a", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	hb := &table.Holder{Owner: "b", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
	ra, rb := leasehold.Range{Limit: middle}, leasehold.Range{Start: middle}
	l := newPaperSuccessor(t, 2, &storage.State{Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: ra, Generation: 1, Holder: ha},
		{LSN: 2, Kind: table.Granted, Range: rb, Generation: 2, Holder: hb},
	}}, short)
	a := &paperOwner{leader: l, holder: ha, leases: []leasehold.Lease{{Range: ra, Generation: 1}}, moving: &moving{}}
	l.owners = []*paperOwner{a}
	a.moving.imports = []protocol.Import{{Ticket: protocol.Ticket{7}, Range: rb, Since: protocol.Since{LSN: 2, Newest: 2}}}
	start := l.now
	a.greet()
	a.moving.parting = true
	for l.now < start.Add(time.Hour) && (a.moving.last == nil || !a.moving.last.Idle) {
		l.advance(time.Second)
		if len(a.unread) > 0 {
			a.read()
		}
		a.say()
		if len(a.unread) > 0 {
			a.read()
		}
	}
	if took := l.now.Sub(start); took > 2*shortTiming().Hold() {
		t.Errorf("idle %t after %v, want within two leases", a.moving.last.Idle, took)
	}
}

// BenchmarkRefusedHello is what a session costs that is refused because there are too many.
func BenchmarkRefusedHello(b *testing.B) {
	cfg := poolConfig()
	cfg.MaxOwners = 4096
	p := newPoolIn(b, 1, cfg, &storage.State{})
	for i := range 4096 {
		p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: poolNamespace, Holder: poolHolder(i), Seq: 1}})
	}
	h := poolHolder(9000)
	for b.Loop() {
		h.Session[3]++
		p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: poolNamespace, Holder: h, Seq: 1}})
	}
}
