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

// I1: an outage has given a more time, and its former deadline counts when another process has its owner name. If
// leases become longer, a message to a promises the longer time from a request that was accepted before: the former
// deadline must be extended as well.
func TestLongerLeasesMoveFormerDeadlines(t *testing.T) {
	l := newPaperLeader(t)
	a, b := l.join("a"), l.join("b")
	a.send()
	a.read()
	b.send()
	b.read()
	start := l.now
	l.advance(40 * time.Second) // no requests
	b.send()                    // b returns: a gets more time, a.due is its former deadline
	b.read()
	l.reconfigure(longTiming())
	c := l.introduce("c") // a gets an unsolicited recall
	l.advance(0)
	if len(a.unread) == 0 {
		t.Fatal("a gets no message")
	}
	reply := a.read() // a receives it; its requests are lost
	if reply.Timing != longTiming() || reply.Echo != a.seq || len(reply.Offers) == 0 {
		t.Fatalf("a got %+v", reply)
	}
	key := reply.Offers[0].Range.Start
	session := a.holder.Session
	c.read()
	a2 := l.introduce("a") // another process with a's owner name
	for l.now < start.Add(100*time.Second) {
		l.advance(500 * time.Millisecond)
		for _, o := range []*paperOwner{b, c, a2} {
			o.send()
			o.read()
		}
		if _, e := l.machine.Table().At(key); e.Vacant() || e.Holder.Session != session {
			t.Fatalf("%v after the last request of a the table has %v for key %v, although a may act on generation %d for %v",
				l.now.Sub(start), e, key, reply.Offers[0].Generation, reply.Timing.Lease)
		}
	}
}

// I11: a session in the table whose owner name a later session has may be dead, and its message stale. It must not
// end the leases of the live owner.
func TestLateMessageOfAGhost(t *testing.T) {
	old, owner := *poolHolder(0), *poolHolder(0)
	old.Session[0] = 'o'
	ra, rb := leasehold.Range{Limit: middle}, leasehold.Range{Start: middle}
	p := newPoolIn(t, 2, poolConfig(), &storage.State{Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: ra, Generation: 1, Holder: &old},
		{LSN: 2, Kind: table.Granted, Range: rb, Generation: 2, Holder: &owner},
	}})
	o := &player{holder: &owner, leases: []leasehold.Lease{{Range: rb, Generation: 2}}}
	p.until(time.Minute) // no requests
	if _, e := p.machine.Table().At(middle); e.Vacant() {
		t.Fatal("the owner has expired")
	}
	// The process of the old session is gone, and a stale message of it arrives.
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

// After a takeover no owner sends requests for a minute. a returns and asks to leave 100 ms later: it waits for b,
// which has one lease time to return, and can then take its range.
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
	a.send()
	a.read()
	l.advance(100 * time.Millisecond)
	a.moving.parting = true
	a.send()
	l.advance(0)
	a.read()
	if a.moving.last.Idle {
		t.Error("a is idle, although b has one lease time to return")
	}
	l.advance(200 * time.Millisecond)
	r = b.request()
	r.Suspended = true
	l.step(manager.Request{LeaseRequest: r})
	b.read()
	b.send()
	l.settle()
	l.advance(0)
	a.send()
	l.settle()
	if len(a.departures()) == 0 {
		t.Error("a has no departure to b")
	}
}

// An owner leaves beside one that has died, while a move to it or from it is in progress. It waits at most one
// lease time.
func TestLeavingBesideASilentOwner(t *testing.T) {
	for _, dead := range []string{"target", "source"} {
		t.Run(dead, func(t *testing.T) {
			l, p := newMovingLeader(t, "ab", short)
			a, b := l.mover("a"), l.mover("b")
			for range 12 {
				l.advance(2 * time.Second)
				a.send()
				l.settle()
				b.send()
				l.settle()
			}
			if dead == "source" { // b sends to a, and dies
				p.give("aa")
				l.replan()
				b.wantDepartures(cell(1, 0))
			}
			died := l.now
			b.unread = nil
			if dead == "target" {
				p.give("bb")
			}
			a.moving.parting = true
			a.send()
			for l.now < died.Add(10*time.Minute) && !a.moving.last.Idle {
				l.advance(time.Second)
				b.unread = nil
				if len(a.unread) > 0 {
					a.read()
				}
				for _, d := range a.departures() {
					a.reports(d, protocol.MoveCopying) // no progress: the target does not answer
				}
				a.send()
				if len(a.unread) > 0 {
					a.read()
				}
			}
			if took := l.now.Sub(died); took > 2*shortTiming().Hold() {
				t.Errorf("idle %t after %v, want within two lease times", a.moving.last.Idle, took)
			}
		})
	}
}

// State has moved to a, and its source and the leader have died. a asks to leave, and waits for the source at most
// one lease time.
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
		a.send()
		if len(a.unread) > 0 {
			a.read()
		}
	}
	if took := l.now.Sub(start); took > 2*shortTiming().Hold() {
		t.Errorf("idle %t after %v, want within two lease times", a.moving.last.Idle, took)
	}
}

// BenchmarkRefusedHello measures the refusal of a session beyond the limit.
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
