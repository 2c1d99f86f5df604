package manager_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A store that was restored from an old backup lacks leases that owners have. No lost generation is granted again,
// and an owner with invented leases cannot exhaust the generations.
func TestForgottenGenerations(t *testing.T) {
	const had = 5000
	p := newPool(t, &storage.State{})
	var batches []*storage.Batch
	p.wrote = func(b *storage.Batch) { batches = append(batches, b) }
	o := p.claims(0, had)
	if o.unread != nil || len(batches) != 1 {
		t.Errorf("the reply is %v, after %v was written", o.unread, batches)
	}
	p.settle()
	if len(batches) != 1 || batches[0].Base == nil || batches[0].Base.LSN() <= had+1<<39 {
		t.Fatalf("it has written %v, want only a table far above, at once: other owners may also have leases that the store has lost", batches)
	}
	// The next leader has this only from the table, and waits as well.
	next := newPoolIn(t, 2, poolConfig(), &storage.State{Table: batches[0].Base, Unfinished: batches[0].Unfinished})
	var then []*storage.Batch
	next.wrote = func(b *storage.Batch) { then = append(then, b) }
	next.joinAll(poolHolder(1))
	if len(then) > 0 {
		t.Errorf("the next leader writes %v at once", then)
	}
	next.waitOut()
	if len(then) < 2 || then[0].Base == nil || then[0].Base.LSN() <= batches[0].Base.LSN() {
		t.Errorf("the next leader writes %v", then)
	}

	p.waitOut()
	p.requireSettled()
	if len(batches) < 3 || batches[1].Base == nil || batches[1].Unfinished {
		t.Fatalf("it has written %v, want the table again once all leases have expired", batches)
	}
	granted := 0
	for _, b := range batches {
		for _, c := range b.Changes {
			if granted++; c.Generation <= had+1<<39 {
				t.Fatalf("generation %d is granted, and an owner had %d: later ones may have been lost as well", c.Generation, had)
			}
		}
	}
	if granted == 0 {
		t.Fatal("nothing is granted")
	}
	newest := p.machine.Table().Newest()
	p.claims(1, newest+1<<50)
	p.settle()
	p.waitOut()
	p.requireSettled()
	if now := p.machine.Table().Newest(); now > newest+10_000 {
		t.Errorf("an implausible claim has raised generations from %d to %d", newest, now)
	}
}

// claims makes an owner claim all keys, under a generation of an earlier leader.
func (p *pool) claims(i int, g leasehold.Generation) *player {
	o := &player{holder: poolHolder(i), leases: []leasehold.Lease{{Range: leasehold.All, Generation: g}}}
	p.players[o.holder.Session] = o
	p.send(o)
	return o
}

// waitOut lets time pass until all leases that the leader does not have in its table have expired. Connected owners
// keep sending requests.
func (p *pool) waitOut() {
	timing := protocol.DefaultTiming()
	for end := p.now.Add(timing.Hold()); p.now < end; {
		p.now = p.now.Add(timing.Renew)
		p.did(p.machine.Advance(p.now))
		p.settle()
		for _, o := range p.players {
			p.send(o)
		}
		p.settle()
	}
}

// asks returns the reply to a lookup; nil if there is none.
func (p *pool) asks(lsn leasehold.LSN, term leasehold.Term) *protocol.LookupReply {
	return p.ask(&protocol.LookupRequest{Namespace: poolNamespace, Lookup: 1, Seq: 1, LSN: lsn, Term: term})
}

// crosses is asks for a lookup that handles crossings.
func (p *pool) crosses(lsn leasehold.LSN) *protocol.LookupReply {
	return p.ask(&protocol.LookupRequest{Namespace: poolNamespace, Lookup: 1, Seq: 1, LSN: lsn, Term: 1, Crosses: true})
}

func (p *pool) ask(r *protocol.LookupRequest) *protocol.LookupReply {
	actions, wake := p.machine.Step(p.now, manager.Lookup{LookupRequest: r})
	var reply *protocol.LookupReply
	for _, a := range actions {
		if a, ok := a.(manager.Answer); ok {
			reply = a.Reply
		}
	}
	p.did(actions, wake)
	return reply
}

// A lookup has only read access. Whatever LSN and term it reports, nothing changes: neither the numbers of its
// namespace's table, nor the leader's term (F4).
func TestLookupsAreNoEvidence(t *testing.T) {
	for _, test := range []struct {
		name  string
		ahead leasehold.LSN // of the table
		term  leasehold.Term
	}{
		{"this term, and ahead", 3, 2},
		{"an earlier term, and ahead", 3, 1},
		{"an unknown term, and far ahead", 1 << 45, 0},
		{"a later term", 0, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPoolIn(t, 2, poolConfig(), heldBy(poolHolder(0)))
			p.claims(0, 1)
			p.settle()
			before := p.machine.Table().LSN()
			actions, wake := p.machine.Step(p.now, manager.Lookup{LookupRequest: &protocol.LookupRequest{
				Namespace: poolNamespace, Lookup: 1, Seq: 1, LSN: before + test.ahead, Term: test.term,
			}})
			for _, a := range actions {
				switch a.(type) {
				case manager.Answer, manager.Note:
				default:
					t.Errorf("action %T", a)
				}
			}
			p.did(actions, wake)
			p.joinAll(poolHolder(1))
			p.requireSettled()
			if now := p.machine.Table().LSN(); now > before+1000 || now == before {
				t.Errorf("the table went from LSN %d to %d", before, now)
			}
		})
	}
}

// suspended makes an owner claim its suspended leases of earlier leaders.
func (p *pool) suspended(i int, g leasehold.Generation) *player {
	o := &player{holder: poolHolder(i), leases: []leasehold.Lease{{Range: leasehold.All, Generation: g}}}
	p.players[o.holder.Session] = o
	p.claim(o)
	return o
}

func (p *pool) claim(o *player) {
	o.seq++
	p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{
		Namespace: poolNamespace, Holder: o.holder, Seq: o.seq, Term: o.term, Heard: o.lastAck, Applied: o.lastAck, Leases: o.leases, Suspended: true,
	}})
}

// DESIGN 5: a leader renews a suspended claim at once if its table has it for this session and generation; there is
// no change, and no loss. A claim of a lease that the table has for another session ends.
func TestSuspendedClaim(t *testing.T) {
	p := newPoolIn(t, 2, poolConfig(), heldBy(poolHolder(0)))
	o := p.suspended(0, 1)
	if o.unread == nil || len(o.unread.Offers) != 1 || o.unread.Offers[0].Lease != o.leases[0] || o.unread.Offers[0].Fresh {
		t.Errorf("the reply is %+v, want its lease", o.unread)
	}
	p.settle()
	if lsn := p.machine.Table().LSN(); lsn != 1 {
		t.Errorf("the table is at LSN %d, want no change", lsn)
	}
	if other := p.suspended(1, 1); other.unread == nil || len(other.unread.Offers) != 0 {
		t.Errorf("the reply to a claim of another owner's lease is %+v, want no offers", other.unread)
	}
}

// A leader that cannot exclude a restored store replies to a suspended claim when every lease that the store may
// have lost has expired, and to a valid one at once. Then it resumes the suspended leases, and nothing is lost.
func TestSuspendedClaimWaits(t *testing.T) {
	cfg := poolConfig()
	cfg.Takeover.Uncertain = true
	hold := protocol.DefaultTiming().Hold()
	p := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
	var batches []*storage.Batch
	p.wrote = func(b *storage.Batch) { batches = append(batches, b) }
	end := p.now.Add(hold)
	o := p.suspended(0, 1)
	for p.now < end-1 {
		p.now = min(p.now.Add(2*time.Second), end-1)
		p.claim(o)
		p.did(p.machine.Advance(p.now))
		if o.unread != nil || len(batches) > 0 {
			t.Fatalf("%v before the end of the wait the reply is %+v, and %v is written", end.Sub(p.now), o.unread, batches)
		}
	}
	p.now = end
	p.did(p.machine.Advance(p.now))
	if o.unread == nil || len(o.unread.Offers) != 1 || o.unread.Offers[0].Lease != o.leases[0] || o.unread.Offers[0].Fresh {
		t.Fatalf("after the wait the reply is %+v, want its lease", o.unread)
	}
	p.settle()
	if len(batches) != 1 || batches[0].Base == nil {
		t.Fatalf("it writes %v, want the gap and nothing else", batches)
	}
	if _, e := batches[0].Base.At(0); e.Generation != 1 || e.Adopted != 1 || e.Lost != 0 {
		t.Errorf("its entry is %+v", e)
	}
	if r := p.crosses(1); r == nil || r.Crossing == nil || r.Crossing.Gap.After != 1 || len(r.Crossing.Unproven) > 0 || r.Age > 0 {
		t.Errorf("the reply to a lookup from before the gap is %+v, want a crossing", r)
	}
	if r := p.asks(1, 1); r == nil || r.Snapshot == nil {
		t.Errorf("the reply to a lookup that does not handle crossings is %+v, want the table", r)
	}
	valid := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
	if o := valid.claims(0, 1); o.unread == nil || len(o.unread.Offers) != 1 {
		t.Errorf("the reply to a claim that is not suspended is %+v, want its lease", o.unread)
	}
}

// An owner with a lease that the table never had proves that history was lost. Leases that were resumed before are
// recalled, and later suspended claims are not resumed: their ranges may have been another owner's. This applies to
// a lease above all stored numbers, and to one inside the gap (F6: a wall clock that was ahead may have caused it).
func TestEvidenceAfterResume(t *testing.T) {
	for name, g := range map[string]func(*pool) leasehold.Generation{
		"inside the gap":    func(*pool) leasehold.Generation { return 7 },
		"of a fast clock":   func(p *pool) leasehold.Generation { return p.machine.Table().Newest() + 1100<<20 },
		"of a faster clock": func(p *pool) leasehold.Generation { return p.machine.Table().Newest() + 1<<45 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := poolConfig()
			cfg.Takeover.Uncertain, cfg.Takeover.Clock = true, storage.Clock(1_800_000_000)
			p := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
			o := p.suspended(0, 1)
			p.now = p.now.Add(protocol.DefaultTiming().Hold() - time.Millisecond)
			p.claim(o)
			p.now = p.now.Add(time.Millisecond)
			p.did(p.machine.Advance(p.now))
			p.settle()
			p.send(o)
			p.settle()
			if len(o.leases) != 1 || o.leases[0].Generation != 1 {
				t.Fatalf("the resumed leases are %v", o.leases)
			}
			had := g(p)
			p.claims(1, had)
			p.settle()
			p.waitOut()
			p.requireSettled()
			for _, l := range o.leases {
				if l.Generation <= had {
					t.Errorf("it still has %v, although an owner had %d", l, had)
				}
			}
			late := p.machine.Table().Newest()
			if uint64(late) <= uint64(had) {
				t.Errorf("generations continue at %d, and %d was assigned", late, had)
			}
		})
	}
}

// If history was lost, or the table has changed since the takeover, a lookup gets the whole table.
func TestNoCrossing(t *testing.T) {
	for name, change := range map[string]func(*manager.Config, *storage.State){
		"restored":   func(c *manager.Config, _ *storage.State) { c.Takeover.Floor, c.Takeover.LostBelow = 1000, 1000 },
		"unfinished": func(_ *manager.Config, s *storage.State) { s.Unfinished = true },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, state := poolConfig(), heldBy(poolHolder(0))
			change(&cfg, state)
			p := newPoolIn(t, 2, cfg, state)
			p.joinAll(poolHolder(1))
			p.waitOut()
			p.requireSettled()
			if r := p.crosses(1); r == nil || r.Snapshot == nil {
				t.Errorf("the reply to a lookup from before the gap is %+v, want the table", r)
			}
		})
	}
}

// uncertainLeaderResumes returns a leader that cannot exclude a restored store, and an owner whose lease of
// generation 1 it has resumed after the wait.
func uncertainLeaderResumes(t *testing.T) (manager.Config, *pool, *player) {
	t.Helper()
	cfg := poolConfig()
	cfg.Takeover.Uncertain, cfg.Takeover.Clock = true, storage.Clock(1_800_000_000)
	first := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
	o := first.suspended(0, 1)
	first.now = first.now.Add(protocol.DefaultTiming().Hold() - time.Millisecond)
	first.claim(o)
	first.now = first.now.Add(time.Millisecond)
	first.did(first.machine.Advance(first.now))
	first.settle()
	first.send(o)
	first.settle()
	if len(o.leases) != 1 || o.leases[0].Generation != 1 {
		t.Fatalf("the resumed leases are %v", o.leases)
	}
	return cfg, first, o
}

// A leader that cannot exclude a restored store resumes a lease, and fails. Its successor renews
// the lease, which is valid now. Then evidence of lost history reaches the successor: the lease
// may have been another owner's before it was resumed, and is recalled.
func TestEvidenceAfterFailover(t *testing.T) {
	cfg, first, o := uncertainLeaderResumes(t)
	cfg.Takeover.Uncertain = false
	p := newPoolIn(t, 3, cfg, &storage.State{Table: first.machine.Table()})
	kept := &player{holder: o.holder, leases: o.leases, resumed: 1}
	p.players[kept.holder.Session] = kept
	p.send(kept)
	p.settle()
	p.send(kept)
	p.settle()
	const lost = 7
	p.claims(1, lost)
	p.settle()
	p.waitOut()
	p.requireSettled()
	for _, l := range kept.leases {
		if l.Generation <= lost {
			t.Errorf("it still has %v, although another owner had generation %d", l, lost)
		}
	}
}

// heldBy returns a state in which an owner has all keys.
func heldBy(h *table.Holder) *storage.State {
	return &storage.State{Changes: []table.Change{{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: h}}}
}

// A table below the floor continues above it, before anything else is written, and after all leases that it lacks
// have expired. Until then no lookup treats its table as current. A lease that its owner claims was not lost; any
// other may have been.
func TestBelowTheFloor(t *testing.T) {
	for _, speaks := range []bool{true, false} {
		t.Run(fmt.Sprintf("its owner sends requests: %t", speaks), func(t *testing.T) {
			cfg := poolConfig()
			cfg.Takeover.Floor = 1 << 50
			p := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
			var batches []*storage.Batch
			p.wrote = func(b *storage.Batch) { batches = append(batches, b) }
			if speaks {
				p.claims(0, 1)
			}
			p.joinAll(poolHolder(1))
			reply := p.asks(1, 1)
			if len(batches) > 0 || reply != nil {
				t.Fatalf("at once it writes %v, and replies %v", batches, reply)
			}
			if reply := p.asks(0, 0); reply == nil || reply.Snapshot == nil || reply.Age < time.Hour {
				t.Errorf("the reply to a lookup without a table is %v", reply)
			}
			p.waitOut()
			p.requireSettled()
			if len(batches) < 2 || batches[0].Base == nil || batches[0].Base.LSN() != 1<<50 || batches[0].Base.Newest() != 1<<50 {
				t.Fatalf("it writes %v", batches)
			}
			if _, e := batches[0].Base.At(0); (e.Adopted == 1) != speaks || e.Lost != 0 || e.Generation != 1 {
				t.Errorf("the entry of its owner is %+v", e)
			}
			if reply = p.asks(1, 1); reply == nil || reply.Snapshot == nil || reply.LSN <= 1<<50 || reply.Age > 0 {
				t.Errorf("then it replies %v", reply)
			}
			// The next leader needs no evidence.
			again := newPoolIn(t, 3, cfg, &storage.State{Table: p.machine.Frozen()})
			if reply := again.asks(reply.LSN, 2); reply == nil || reply.LSN != p.machine.Table().LSN() {
				t.Errorf("the next leader replies %v", reply)
			}
		})
	}
}

// If a store is restored while a leader writes, its log has another end than expected. The leader requests a new
// term.
func TestRestoredWhileItWrites(t *testing.T) {
	p := newPool(t, &storage.State{})
	p.join(poolHolder(0))
	for len(p.queue) > 0 { // until it writes
		o := p.queue[0]
		p.queue = p.queue[1:]
		if o.read() {
			p.send(o)
		}
	}
	if !p.committing {
		t.Fatal("no batch is pending")
	}
	p.machine.Step(p.now, manager.Committed{Outcome: storage.Conflict})
	actions, _ := p.machine.Step(p.now, manager.LogEnd{Term: 1, LSN: 77})
	asked := slices.ContainsFunc(actions, func(a manager.Action) bool { return a == manager.Outranked{By: 2} })
	noted := slices.ContainsFunc(actions, func(a manager.Action) bool {
		n, ok := a.(manager.Note)
		return ok && n.What == manager.NoteLogForgotten && n.LSN == 77
	})
	if !asked || !noted {
		t.Errorf("its actions are %v", actions)
	}
}

// An owner acknowledges a newer message than this leader has sent in its term: the store has lost the record of an
// earlier leader in it. The owner would drop this leader's messages as duplicates.
func TestTermLedTwice(t *testing.T) {
	p := newPool(t, &storage.State{})
	for acked, asked := range map[protocol.Seq]bool{0: false, 99: true} {
		actions, _ := p.machine.Step(p.now, manager.Request{LeaseRequest: &protocol.LeaseRequest{
			Namespace: poolNamespace, Holder: poolHolder(0), Seq: 5, Term: 1, Heard: acked, Applied: acked,
		}})
		if got := slices.Contains(actions, manager.Action(manager.Outranked{By: 2})); got != asked {
			t.Errorf("acknowledged %d: a new term is requested: %t, want %t", acked, got, asked)
		}
	}
}

// An owner reports that it no longer has its leases while the leader waits, because its store may be restored. They
// are granted at the end of the wait, and not at the owner's next renewal.
func TestReleasedDuringTheWait(t *testing.T) {
	old := newPool(t, &storage.State{})
	old.joinAll(poolHolder(0), poolHolder(1))
	cfg := poolConfig()
	cfg.Takeover.Uncertain = true
	p := newPoolIn(t, 2, cfg, &storage.State{Table: old.machine.Frozen()})
	p.players = old.players
	a, b := p.players[poolHolder(0).Session], p.players[poolHolder(1).Session]
	a.leases = nil // its application keeps suspended state for a short time only
	for range 4 {
		p.send(a)
		p.claim(b)
		p.settle()
		p.until(2900 * time.Millisecond)
	}
	if len(a.leases) > 0 {
		t.Fatalf("%v is granted during the wait", a.leases)
	}
	p.until(600 * time.Millisecond) // the owner sends nothing meanwhile
	if len(a.leases) == 0 {
		t.Error("nothing is granted at the end of the wait")
	}
	p.requireSettled()
}

// A leader with evidence of lost history fails after it has stored the gap, while an owner is silent. Its successor
// does not resume the lease of that owner.
func TestSilentOwnerAfterLostHistory(t *testing.T) {
	cfg := poolConfig()
	cfg.Takeover.Floor, cfg.Takeover.LostBelow, cfg.Takeover.Uncertain, cfg.Takeover.Clock = 1000, 1000, true, storage.Clock(1_800_000_000)
	first := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
	first.until(2 * protocol.DefaultTiming().Hold())
	cfg.Takeover.Uncertain = false
	p := newPoolIn(t, 3, cfg, &storage.State{Table: first.machine.Frozen()})
	o := p.suspended(0, 1)
	p.settle()
	p.waitOut()
	p.requireSettled()
	for _, l := range o.leases {
		if l.Generation == 1 {
			t.Errorf("%v is resumed", l)
		}
	}
}

// Evidence reaches a leader that has stored a gap and resumed a lease. It is stored before the reply to the owner
// that has it: that owner drops it, and a successor would have no evidence.
func TestEvidenceIsStoredFirst(t *testing.T) {
	cfg, first, o := uncertainLeaderResumes(t)
	var wrote *storage.Batch
	first.wrote = func(b *storage.Batch) { wrote = b }
	c := first.claims(1, 7)
	if c.unread != nil || wrote == nil || !wrote.Unfinished {
		t.Fatalf("the reply is %v, and %v is written", c.unread, wrote)
	}
	cfg.Takeover.Uncertain = false
	p := newPoolIn(t, 3, cfg, &storage.State{Table: wrote.Base, Unfinished: wrote.Unfinished})
	a, b := &player{holder: o.holder, leases: o.leases, resumed: 1}, &player{holder: c.holder}
	p.players[a.holder.Session], p.players[b.holder.Session] = a, b
	p.send(a)
	p.send(b)
	p.settle()
	p.waitOut()
	p.waitOut()
	for _, l := range a.leases {
		if l.Generation == 1 {
			t.Errorf("it still has %v", l)
		}
	}
}

// History was lost, and the lease of an owner stayed valid. A network outage in the same term costs nothing.
func TestOutageAfterLostHistory(t *testing.T) {
	cfg := poolConfig()
	cfg.Takeover.Floor, cfg.Takeover.LostBelow, cfg.Takeover.Uncertain, cfg.Takeover.Clock = 1000, 1000, true, storage.Clock(1_800_000_000)
	p := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
	o := p.claims(0, 1)
	p.settle()
	p.waitOut()
	p.requireSettled()
	p.until(time.Minute)
	p.claim(o)
	p.settle()
	o.resumed = 1
	for range 3 {
		p.until(protocol.DefaultTiming().Renew)
		p.send(o)
		p.settle()
	}
	if len(o.leases) != 1 || o.leases[0].Generation != 1 {
		t.Errorf("after the outage it has %v", o.leases)
	}
}
