package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// until lets time pass, with the leader's wake-ups.
func (p *pool) until(end time.Duration) {
	for limit := p.now.Add(end); p.now < limit; {
		p.now = max(min(p.wake, limit), p.now+1)
		p.did(p.machine.Advance(p.now))
		p.settle()
	}
}

// I11: all owners are cut off, for less than a lease time, for about one, or for longer, and return one after the
// other. Nothing changes in the table.
func TestOutageOfAnyLength(t *testing.T) {
	for _, away := range []time.Duration{
		7 * time.Second, 9 * time.Second, 9500 * time.Millisecond, 11 * time.Second, 11900 * time.Millisecond, 12100 * time.Millisecond,
		20 * time.Second, time.Minute, 24 * time.Hour,
	} {
		t.Run(away.String(), func(t *testing.T) {
			p := newPool(t, &storage.State{})
			p.joinAll(poolHolder(0), poolHolder(1))
			a, b := p.players[poolHolder(0).Session], p.players[poolHolder(1).Session]
			for range 20 {
				for _, o := range []*player{b, a} {
					p.until(1200 * time.Millisecond)
					p.send(o)
					p.settle()
				}
			}
			before := p.machine.Table().LSN()
			p.until(away)
			p.claim(a)
			p.settle()
			p.until(2500 * time.Millisecond)
			p.claim(b)
			p.settle()
			if now := p.machine.Table().LSN(); now != before {
				t.Errorf("the table went from LSN %d to %d", before, now)
			}
		})
	}
}

// I11: a stale message of a former session arrives while the owner that has its name now is silent. That owner
// keeps its leases; a live session would get the name.
func TestLateMessageReplacesNobody(t *testing.T) {
	p := newPool(t, &storage.State{})
	p.joinAll(poolHolder(0))
	owner := p.players[poolHolder(0).Session]
	before := p.machine.Table().LSN()
	clear(p.players)
	p.until(time.Minute)
	late := *poolHolder(0)
	late.Session[0] = 'l'
	p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: poolNamespace, Holder: &late, Seq: 9}})
	p.until(time.Second)
	p.players[owner.holder.Session] = owner
	p.claim(owner)
	p.settle()
	if now := p.machine.Table().LSN(); now != before {
		t.Errorf("the table went from LSN %d to %d", before, now)
	}
	clear(p.players)
	p.until(time.Minute)
	p.join(&late)
	p.settle()
	p.until(time.Millisecond)
	if got := p.machine.Table().LSN(); got == before {
		t.Error("a live session does not get the name of a silent one")
	}
}

// Owners that are kept past their deadlines do not lock out those that could take their ranges.
func TestKeptOwnersLeaveRoom(t *testing.T) {
	cfg := poolConfig()
	cfg.MaxOwners = 2
	p := newPoolIn(t, 1, cfg, &storage.State{})
	p.joinAll(poolHolder(0), poolHolder(1))
	clear(p.players)
	p.until(time.Minute)
	newcomer := p.join(poolHolder(2))
	for range 10 {
		p.until(2 * time.Second)
		p.send(newcomer)
		p.settle()
	}
	if len(newcomer.leases) == 0 {
		t.Error("the new owner gets no lease")
	}
}

// The number of connected owners is limited.
func TestMaxOwners(t *testing.T) {
	cfg := poolConfig()
	cfg.MaxOwners = 2
	p := newPoolIn(t, 1, cfg, &storage.State{})
	p.joinAll(poolHolder(0), poolHolder(1), poolHolder(2))
	if n := p.machine.Sizes().Sessions; n != 2 {
		t.Errorf("there are %d sessions, want 2", n)
	}
}

// A server that crashes repeatedly, with a new owner name each time, does not exhaust the leader's memory, and does
// not end the lease of the owner that was cut off.
func TestNewcomersThatCrash(t *testing.T) {
	for name, mover := range map[string]string{"without a mover": "", "with a mover": "10.0.0.1:7001"} {
		t.Run(name, func(t *testing.T) { newcomersThatCrash(t, mover) })
	}
}

func newcomersThatCrash(t *testing.T, mover string) {
	cfg := poolConfig()
	cfg.MaxOwners = 3
	p := newPoolIn(t, 1, cfg, &storage.State{})
	p.joinAll(poolHolder(0))
	owner := p.players[poolHolder(0).Session]
	before := p.machine.Table().LSN()
	clear(p.players)
	p.until(time.Minute)
	for i := range 20 {
		h := poolHolder(1 + i)
		p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: poolNamespace, Holder: h, Seq: 1, Mover: mover}})
		if i%2 == 0 { // it acknowledges the reply, too
			p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{
				Namespace: poolNamespace, Holder: h, Seq: 2, Term: 1, Heard: p.machine.Seq(), Applied: p.machine.Seq(), Mover: mover,
			}})
		}
		p.settle()
		p.until(20 * time.Second)
		if n := p.machine.Sizes().Sessions; n > 6 {
			t.Fatalf("after %d new owners there are %d sessions", 1+i, n)
		}
		if now := p.machine.Table().LSN(); now != before {
			t.Fatalf("after %d new owners the table went from LSN %d to %d", 1+i, before, now)
		}
	}
	p.players[owner.holder.Session] = owner
	p.claim(owner)
	p.settle()
	if now := p.machine.Table().LSN(); now != before {
		t.Errorf("when the owner returned, the table went from LSN %d to %d", before, now)
	}
}

// I11: a new leader receives the first owner's request early, late, or after the deadline. The second, which
// returns half a second later, keeps its leases.
func TestTakeoverWaitsForTheSecond(t *testing.T) {
	for _, first := range []time.Duration{5 * time.Second, 11900 * time.Millisecond, 12100 * time.Millisecond, time.Hour} {
		t.Run(first.String(), func(t *testing.T) {
			old := newPool(t, &storage.State{})
			old.joinAll(poolHolder(0), poolHolder(1))
			p := newPoolIn(t, 2, poolConfig(), &storage.State{Table: old.machine.Frozen()})
			p.players = old.players
			before := p.machine.Table().LSN()
			p.until(first)
			p.claim(p.players[poolHolder(0).Session])
			p.settle()
			p.until(500 * time.Millisecond)
			p.claim(p.players[poolHolder(1).Session])
			p.settle()
			p.until(100 * time.Millisecond)
			if now := p.machine.Table().LSN(); now != before {
				t.Errorf("the table went from LSN %d to %d", before, now)
			}
		})
	}
}

// An owner that is leaving does not wait for one past its deadline to take its ranges. That one stays in the table:
// no other owner could take its ranges either (I11).
func TestPartingBesideADeadOwner(t *testing.T) {
	ha := &table.Holder{Owner: "a", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	hb := &table.Holder{Owner: "b", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
	ra, rb := leasehold.Range{Limit: middle}, leasehold.Range{Start: middle}
	l := newPaperSuccessor(t, 2, &storage.State{Changes: []table.Change{
		{LSN: 1, Kind: table.Granted, Range: ra, Generation: 1, Holder: ha},
		{LSN: 2, Kind: table.Granted, Range: rb, Generation: 2, Holder: hb},
	}})
	a := &paperOwner{leader: l, holder: ha, leases: []leasehold.Lease{{Range: ra, Generation: 1}}, moving: &moving{}}
	b := &paperOwner{leader: l, holder: hb, leases: []leasehold.Lease{{Range: rb, Generation: 2}}, moving: &moving{}}
	l.owners = []*paperOwner{a, b}
	a.greet()
	b.greet()
	l.settle()
	l.renew(70*time.Second, a, b)
	a.parts() // b is dead from here on: moves to it fail
	for end := l.now.Add(2 * paperHold); l.now < end && !a.moving.last.Idle; {
		l.advance(5 * time.Second)
		b.unread = nil
		if len(a.unread) > 0 {
			a.read()
		}
		for _, d := range a.departures() {
			a.reports(d, protocol.MoveFailed)
			if len(a.unread) > 0 {
				a.read()
			}
		}
		a.send()
		if len(a.unread) > 0 {
			a.read()
		}
	}
	if !a.moving.last.Idle || l.noted(manager.NoteExpired) != 0 {
		t.Errorf("after %v: idle %t; %d owners have expired", 2*paperHold, a.moving.last.Idle, l.noted(manager.NoteExpired))
	}
}

// After evidence of lost history, moves that this leader orders are recorded as moves.
func TestMoveAfterEvidence(t *testing.T) {
	for name, evidence := range map[string]bool{"without": false, "with": true} {
		t.Run(name, func(t *testing.T) {
			l, p := newMovingLeader(t, "aaa")
			a, b := l.mover("a"), l.mover("b")
			l.renew(70*time.Second, a, b)
			if evidence {
				c := l.newcomer("c")
				c.leases = []leasehold.Lease{{Range: cell(0, 1), Generation: 7}}
				c.send()
				l.settle()
				l.renew(70*time.Second, a, b, c)
			}
			l.renew(700*time.Second, a, b)
			p.give("aba")
			l.replan()
			a.wantDepartures(cell(1, 2))
			since := len(l.log)
			a.completes(a.departures()[0])
			l.settle()
			if got := l.changesSince(since); len(got) != 1 || slices.ContainsFunc(l.log[since:], func(c table.Change) bool { return c.Kind != table.Moved }) {
				t.Errorf("recorded changes: %v, want one move", got)
			}
		})
	}
}

// Evidence of a generation that this leader has passed since is still evidence: the store was assumed to be
// complete, and may have lost more.
func TestEvidenceBelowNewest(t *testing.T) {
	p := newPoolIn(t, 2, poolConfig(), heldBy(poolHolder(0)))
	gaps := 0
	p.wrote = func(b *storage.Batch) {
		if b.Base != nil {
			gaps++
		}
	}
	p.claims(0, 1)
	p.settle()
	p.waitOut()
	p.joinAll(poolHolder(1), poolHolder(2))
	if newest := p.machine.Table().Newest(); newest < 6 {
		t.Fatalf("%d generations are granted: too few for this test", newest)
	}
	p.claims(7, 5) // of a leader in term 1; the newest in the store was 1 at the takeover
	p.settle()
	p.waitOut()
	if gaps == 0 {
		t.Error("numbers continue without a gap")
	}
}

// Owners with implausible claims do not exhaust generations, however many of them there are.
func TestClaimsDoNotUseGenerationsUp(t *testing.T) {
	cfg := poolConfig()
	cfg.Takeover.Clock = storage.Clock(1_800_000_000)
	p := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
	p.claims(0, 1)
	p.settle()
	p.waitOut()
	for n := range 100 {
		h, before := poolHolder(9), poolHolder(9)
		h.Session[0], before.Session[0] = byte(n+1), byte(n)
		p.now++
		p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{
			Namespace: poolNamespace, Holder: h, Seq: 1, Gone: before.Session, Term: 2,
			Leases: []leasehold.Lease{{Range: leasehold.All, Generation: p.machine.Table().Newest() + 1<<48 - 1}},
		}})
		p.settle()
	}
	if newest := p.machine.Table().Newest(); newest > 1<<52 {
		t.Errorf("generations are at %x", newest)
	}
}
