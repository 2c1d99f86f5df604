package manager_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

const poolNamespace leasehold.Namespace = "pool"

// A pool is a leader with owners and a store that are played: no message is
// lost or late, and a commit is done as soon as it is asked for, unless it is
// held back. What the leader itself takes is added up in spent; what the
// others take is not.
type pool struct {
	t testing.TB

	machine *manager.Machine
	now     mono.Instant
	wake    mono.Instant
	spent   time.Duration

	players map[leasehold.Session]*player
	// queue is the players with a reply to read, in the order of the first one
	// that each has not read.
	queue []*player

	committing bool // a commit waits for its outcome
	hold       bool // its outcome waits until nobody has anything else to say

	steps, commits, changes int
	wrote                   func(*storage.Batch) // if set, is told of every commit
}

// A player is one session of an owner that takes whatever it is offered.
type player struct {
	holder  *table.Holder
	leases  []leasehold.Lease
	seq     protocol.Seq
	term    leasehold.Term
	heard   protocol.Seq
	leaving bool
	resumed leasehold.Generation // of its leases that were suspended once

	unread *protocol.LeaseReply // the newest
}

// newPool returns a leader that has just begun to lead from state.
func newPool(t testing.TB, state *storage.State) *pool {
	t.Helper()
	return newPoolWith(t, partition.Consistent{}, state)
}

func newPoolWith(t testing.TB, policy partition.Policy, state *storage.State) *pool {
	t.Helper()
	cfg := poolConfig()
	cfg.Policy = policy
	return newPoolOf(t, cfg, state)
}

func newPoolOf(t testing.TB, cfg manager.Config, state *storage.State) *pool {
	t.Helper()
	return newPoolIn(t, 1, cfg, state)
}

func newPoolIn(t testing.TB, term leasehold.Term, cfg manager.Config, state *storage.State) *pool {
	t.Helper()
	p := &pool{t: t, now: mono.Instant(time.Hour), players: make(map[leasehold.Session]*player)}
	m, err := manager.New(p.now, cfg, term, mono.Never, state)
	if err != nil {
		t.Fatal(err)
	}
	p.machine = m
	p.did(m.Advance(p.now))
	return p
}

func poolConfig() manager.Config {
	return manager.Config{Namespace: poolNamespace, Self: "m1", Rand: rand.New(rand.NewPCG(1, 2))}
}

// poolHolder returns the first session of the i-th owner.
func poolHolder(i int) *table.Holder {
	h := &table.Holder{Owner: leasehold.OwnerID(fmt.Sprintf("server-%05d", i)), Addr: "10.0.0.1:7000", Weight: 1}
	copy(h.Session[:], fmt.Sprintf("session-%08d", i))
	return h
}

// step lets an event happen to the leader.
func (p *pool) step(e manager.Event) {
	start := time.Now()
	actions, wake := p.machine.Step(p.now, e)
	p.spent += time.Since(start)
	p.steps++
	p.did(actions, wake)
}

// did does what the leader wants done.
func (p *pool) did(actions []manager.Action, wake mono.Instant) {
	p.wake = wake
	for _, a := range actions {
		switch a := a.(type) {
		case manager.Send:
			p.deliver(a.Reply)
		case manager.Commit:
			p.committing = true
			p.commits++
			p.changes += len(a.Batch.Changes)
			if p.wrote != nil {
				p.wrote(a.Batch)
			}
		case manager.Deposed, manager.ReadEnd:
			p.t.Fatalf("the leader wants %T, and nothing went wrong", a)
		}
	}
}

func (p *pool) deliver(r *protocol.LeaseReply) {
	o := p.players[r.Session]
	if o == nil {
		return
	}
	if o.unread == nil {
		p.queue = append(p.queue, o)
	}
	o.unread = r
}

// settle lets everyone answer until nobody has anything to say.
func (p *pool) settle() {
	for {
		switch {
		case p.committing && (!p.hold || len(p.queue) == 0):
			p.committing = false
			p.step(manager.Committed{Outcome: storage.Done})
		case len(p.queue) > 0:
			o := p.queue[0]
			p.queue = p.queue[1:]
			if o.read() {
				p.say(o)
			}
		default:
			return
		}
	}
}

// read takes in the newest reply, and reports whether the leader should hear
// about it at once.
func (o *player) read() bool {
	r := o.unread
	o.unread = nil
	first := r.Term != o.term
	o.term, o.heard = r.Term, r.Seq
	if o.leaving {
		return false
	}
	news := len(o.leases) != len(r.Offers)
	for i := 0; i < len(r.Offers) && !news; i++ {
		news = r.Offers[i].Fresh || r.Offers[i].Lease != o.leases[i]
	}
	if news {
		had := o.leases
		o.leases = nil
		for _, offer := range r.Offers {
			if offer.Fresh || renews(offer.Lease, had) {
				o.leases = append(o.leases, offer.Lease)
			}
		}
	}
	return news || first
}

// renews reports whether an offer is part of a lease that the owner has. Others that are not
// fresh are refused.
func renews(l leasehold.Lease, had []leasehold.Lease) bool {
	return slices.ContainsFunc(had, func(h leasehold.Lease) bool { return h.Generation == l.Generation && h.Range.Covers(l.Range) })
}

// say sends what the player has.
func (p *pool) say(o *player) {
	o.seq++
	p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{
		Namespace: poolNamespace, Holder: o.holder, Seq: o.seq,
		Term: o.term, Heard: o.heard, Applied: o.heard, Leases: o.leases, Leaving: o.leaving, Resumed: o.resumed,
	}})
}

// join starts an owner, which has not been heard yet when it returns.
func (p *pool) join(h *table.Holder) *player {
	o := &player{holder: h}
	p.players[h.Session] = o
	p.say(o)
	return o
}

// leave ends an owner, whose ranges are not granted anew when it returns.
func (p *pool) leave(o *player) {
	o.leaving, o.leases = true, nil
	p.say(o)
	delete(p.players, o.holder.Session)
}

// joinAll starts many owners, who are all heard while the first commit is
// under way.
func (p *pool) joinAll(holders ...*table.Holder) {
	p.hold = true
	for _, h := range holders {
		p.join(h)
	}
	p.settle()
	p.hold = false
}

// requireSettled fails unless every key is held by someone who knows it and
// nothing is left to do.
func (p *pool) requireSettled() {
	p.t.Helper()
	if sizes := p.machine.Sizes(); sizes.Freed != 0 || p.committing || len(p.queue) != 0 {
		p.t.Fatalf("not settled: %+v, committing %t, %d to be heard", sizes, p.committing, len(p.queue))
	}
	held := 0
	for r, e := range p.machine.Table().All() {
		if e.Vacant() {
			p.t.Fatalf("%v is vacant", r)
		}
		if o := p.players[e.Holder.Session]; o == nil {
			p.t.Fatalf("%v is with %v, who is gone", r, e.Holder)
		}
		held++
	}
	for _, o := range p.players {
		held -= len(o.leases)
	}
	if held != 0 {
		p.t.Fatalf("the table has %d more ranges than owners have leases", held)
	}
}
