package manager_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A store that was restored from an old backup knows nothing of leases that owners have. None of what it has
// forgotten is granted a second time, and an owner that makes such leases up cannot use generations up.
func TestForgottenGenerations(t *testing.T) {
	const had = 5000
	p := newPool(t, &storage.State{})
	var batches []*storage.Batch
	p.wrote = func(b *storage.Batch) { batches = append(batches, b) }
	o := p.claims(0, had)
	if o.unread != nil || len(batches) != 1 {
		t.Errorf("it is answered %v, after %v was written", o.unread, batches)
	}
	p.settle()
	if len(batches) != 1 || batches[0].Base == nil || batches[0].Base.LSN() <= had+1<<39 {
		t.Fatalf("it has written %v, want a table far above, at once, and nothing else: others may have leases as well that the store has forgotten", batches)
	}
	// Whoever leads next knows it from the table alone, and waits as well.
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
		t.Fatalf("it has written %v, want the table again once all leases have ended", batches)
	}
	granted := 0
	for _, b := range batches {
		for _, c := range b.Changes {
			if granted++; c.Generation <= had+1<<39 {
				t.Fatalf("generation %d is granted, and %d was before: nobody knows what else was", c.Generation, had)
			}
		}
	}
	if granted == 0 {
		t.Fatal("nothing is granted")
	}
	newest := p.machine.Table().Newest()
	p.claims(1, newest+1<<39)
	p.settle()
	p.waitOut()
	p.requireSettled()
	if now := p.machine.Table().Newest(); now > newest+10_000 {
		t.Errorf("another claim has taken generations from %d to %d", newest, now)
	}
}

// claims lets an owner say that it has everything, under a generation that a leader before this one gave it.
func (p *pool) claims(i int, g leasehold.Generation) *player {
	o := &player{holder: poolHolder(i), leases: []leasehold.Lease{{Range: leasehold.All, Generation: g}}}
	p.players[o.holder.Session] = o
	p.say(o)
	return o
}

// waitOut lets the time pass for which leases may last of which the leader knows nothing, while those that it has
// heard go on speaking.
func (p *pool) waitOut() {
	timing := protocol.DefaultTiming()
	for end := p.now.Add(timing.Hold()); p.now < end; {
		p.now = p.now.Add(timing.Renew)
		p.did(p.machine.Advance(p.now))
		p.settle()
		for _, o := range p.players {
			p.say(o)
		}
		p.settle()
	}
}

// asks returns what a lookup is answered; nil if it is not.
func (p *pool) asks(lsn leasehold.LSN, term leasehold.Term) *protocol.LookupReply {
	actions, wake := p.machine.Step(p.now, manager.Lookup{LookupRequest: &protocol.LookupRequest{Namespace: poolNamespace, Lookup: 1, Seq: 1, LSN: lsn, Term: term}})
	var reply *protocol.LookupReply
	for _, a := range actions {
		if a, ok := a.(manager.Answer); ok {
			reply = a.Reply
		}
	}
	p.did(actions, wake)
	return reply
}

// A lookup has heard of changes that the store has forgotten, though the log may have passed their numbers since.
// It gets the whole table, far above all that it knows; and none that makes such changes up can have that done
// twice.
func TestForgottenChanges(t *testing.T) {
	for _, test := range []struct {
		name    string
		ahead   leasehold.LSN // of the table
		term    leasehold.Term
		reminds bool
	}{
		{"of this term, and ahead", 3, 2, true},
		{"of a term before, and ahead", 3, 1, true},
		{"of an unknown term, and ahead", 3, 0, true},
		{"of a term before, and passed", 0, 1, true},
		{"of an unknown term, and passed", 0, 0, false},
		{"of this term", 0, 2, false},
		{"made up", 1 << 45, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := heldBy(poolHolder(0))
			p := newPoolIn(t, 2, poolConfig(), state)
			p.claims(0, 1)
			p.settle()
			p.waitOut()
			p.joinAll(poolHolder(1))
			p.waitOut()
			p.requireSettled()
			before := p.machine.Table().LSN()
			if before <= state.End() {
				t.Fatal("nothing has changed")
			}
			reply := p.asks(before+test.ahead, test.term)
			if (reply == nil) != (test.reminds || test.ahead > 0) {
				t.Errorf("it is answered %v", reply)
			}
			p.settle()
			p.waitOut()
			after := p.machine.Table().LSN()
			if far := after > before+1<<39; far != test.reminds {
				t.Fatalf("the table goes from %d to %d", before, after)
			}
			if !test.reminds {
				return
			}
			if reply := p.asks(before+test.ahead, test.term); reply == nil || reply.Snapshot == nil || reply.LSN != after {
				t.Errorf("it is answered %v, want the table", reply)
			}
			p.requireSettled()
			p.asks(after+5, 2)
			p.settle()
			if now := p.machine.Table().LSN(); now > after+1000 {
				t.Errorf("another has made it go from %d to %d", after, now)
			}
		})
	}
}

// heldBy is a store in which an owner has everything.
func heldBy(h *table.Holder) *storage.State {
	return &storage.State{Changes: []table.Change{{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: h}}}
}

// A table that is below the floor goes on above it, before anything else is written, and after all leases have
// ended that it knows nothing of. Until then no lookup is told that it knows everything. What an owner says that it
// has was not lost; whatever else the table says may have been.
func TestBelowTheFloor(t *testing.T) {
	for _, speaks := range []bool{true, false} {
		t.Run(fmt.Sprintf("its owner speaks: %t", speaks), func(t *testing.T) {
			cfg := poolConfig()
			cfg.Floor = 1 << 50
			p := newPoolIn(t, 2, cfg, heldBy(poolHolder(0)))
			var batches []*storage.Batch
			p.wrote = func(b *storage.Batch) { batches = append(batches, b) }
			if speaks {
				p.claims(0, 1)
			}
			p.joinAll(poolHolder(1))
			reply := p.asks(1, 1)
			if len(batches) > 0 || reply != nil {
				t.Fatalf("at once it writes %v, and answers %v", batches, reply)
			}
			if reply := p.asks(0, 0); reply == nil || reply.Snapshot == nil || reply.Age < time.Hour {
				t.Errorf("who knows nothing is answered %v", reply)
			}
			p.waitOut()
			p.requireSettled()
			if len(batches) < 2 || batches[0].Base == nil || batches[0].Base.LSN() != 1<<50 || batches[0].Base.Newest() != 1<<50 {
				t.Fatalf("it writes %v", batches)
			}
			if _, e := batches[0].Base.At(0); (e.Adopted == 1) != speaks || e.Lost != 1<<50 || e.Generation != 1 {
				t.Errorf("what its owner had is %+v", e)
			}
			if reply = p.asks(1, 1); reply == nil || reply.Snapshot == nil || reply.LSN <= 1<<50 || reply.Age > 0 {
				t.Errorf("then it answers %v", reply)
			}
			// Who leads next need not know.
			again := newPoolIn(t, 3, cfg, &storage.State{Table: p.machine.Frozen()})
			if reply := again.asks(reply.LSN, 2); reply == nil || reply.LSN != p.machine.Table().LSN() {
				t.Errorf("the next leader answers %v", reply)
			}
		})
	}
}

// A store that is restored while a leader writes ends elsewhere than it may. The leader asks for another.
func TestRestoredWhileItWrites(t *testing.T) {
	p := newPool(t, &storage.State{})
	p.join(poolHolder(0))
	for len(p.queue) > 0 { // until it writes
		o := p.queue[0]
		p.queue = p.queue[1:]
		if o.read() {
			p.say(o)
		}
	}
	if !p.committing {
		t.Fatal("it writes nothing")
	}
	p.machine.Step(p.now, manager.Committed{Outcome: storage.Conflict})
	actions, _ := p.machine.Step(p.now, manager.LogEnd{Term: 1, LSN: 77})
	asked := slices.ContainsFunc(actions, func(a manager.Action) bool { return a == manager.Outranked{By: 2} })
	noted := slices.ContainsFunc(actions, func(a manager.Action) bool {
		n, ok := a.(manager.Note)
		return ok && n.What == manager.NoteLogForgotten && n.Have == 77
	})
	if !asked || !noted {
		t.Errorf("it does %v", actions)
	}
}

// An owner has heard more from a leader of our term than we have said: the store has forgotten who led in it. It would
// take what we say for repetitions.
func TestTermLedTwice(t *testing.T) {
	p := newPool(t, &storage.State{})
	for heard, asked := range map[protocol.Seq]bool{0: false, 99: true} {
		actions, _ := p.machine.Step(p.now, manager.Request{LeaseRequest: &protocol.LeaseRequest{
			Namespace: poolNamespace, Holder: poolHolder(0), Seq: 5, Term: 1, Heard: heard, Applied: heard,
		}})
		if got := slices.Contains(actions, manager.Action(manager.Outranked{By: 2})); got != asked {
			t.Errorf("heard %d: whether another term is asked for: %t, want %t", heard, got, asked)
		}
	}
}
