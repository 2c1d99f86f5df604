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

// A pool is a leader with simulated owners and a simulated store: no message is lost or late, and a commit succeeds
// at once, unless it is held back. spent is the time that the leader itself uses, without that of the owners and
// the store.
type pool struct {
	t testing.TB

	machine *manager.Machine
	now     mono.Instant
	wake    mono.Instant
	spent   time.Duration

	players map[leasehold.Session]*player
	// queue is the players with an unread reply, in the order of their first unread reply.
	queue []*player

	committing bool // a commit waits for its outcome
	hold       bool // its outcome waits until no owner has anything to send

	steps, commits, changes int
	wrote                   func(*storage.Batch) // if set, called with every commit
}

// A player is one session of an owner that accepts every offer.
type player struct {
	holder  *table.Holder
	leases  []leasehold.Lease
	seq     protocol.Seq
	term    leasehold.Term
	lastAck protocol.Seq
	leaving bool
	resumed leasehold.Generation // newest generation that was ever resumed

	unread *protocol.LeaseReply // newest reply
}

// newPool returns a leader that has just taken over with state.
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

// step passes an event to the leader.
func (p *pool) step(e manager.Event) {
	start := time.Now()
	actions, wake := p.machine.Step(p.now, e)
	p.spent += time.Since(start)
	p.steps++
	p.did(actions, wake)
}

// did executes the leader's actions.
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
			p.t.Fatalf("unexpected action %T", a)
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

// settle delivers messages until there are none.
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
				p.send(o)
			}
		default:
			return
		}
	}
}

// read applies the newest reply, and reports whether the owner must send a request at once.
func (o *player) read() bool {
	r := o.unread
	o.unread = nil
	first := r.Term != o.term
	o.term, o.lastAck = r.Term, r.Seq
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

// renews reports whether an offer is part of a lease that the owner has. Other offers that are not fresh are
// refused.
func renews(l leasehold.Lease, had []leasehold.Lease) bool {
	return slices.ContainsFunc(had, func(h leasehold.Lease) bool { return h.Generation == l.Generation && h.Range.Covers(l.Range) })
}

// send sends a request with the player's leases.
func (p *pool) send(o *player) {
	o.seq++
	p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{
		Namespace: poolNamespace, Holder: o.holder, Seq: o.seq,
		Term: o.term, Heard: o.lastAck, Applied: o.lastAck, Leases: o.leases, Leaving: o.leaving, Resumed: o.resumed,
	}})
}

// join adds an owner and sends its first request.
func (p *pool) join(h *table.Holder) *player {
	o := &player{holder: h}
	p.players[h.Session] = o
	p.send(o)
	return o
}

// leave removes an owner. Its ranges are not granted again when it returns.
func (p *pool) leave(o *player) {
	o.leaving, o.leases = true, nil
	p.send(o)
	delete(p.players, o.holder.Session)
}

// joinAll adds owners that all send their first request while the first commit is pending.
func (p *pool) joinAll(holders ...*table.Holder) {
	p.hold = true
	for _, h := range holders {
		p.join(h)
	}
	p.settle()
	p.hold = false
}

// requireSettled fails unless every key has a holder that has confirmed it, and nothing is pending.
func (p *pool) requireSettled() {
	p.t.Helper()
	if sizes := p.machine.Sizes(); sizes.Freed != 0 || p.committing || len(p.queue) != 0 {
		p.t.Fatalf("not settled: %+v, committing %t, %d unread replies", sizes, p.committing, len(p.queue))
	}
	held := 0
	for r, e := range p.machine.Table().All() {
		if e.Vacant() {
			p.t.Fatalf("%v is vacant", r)
		}
		if o := p.players[e.Holder.Session]; o == nil {
			p.t.Fatalf("the holder of %v, %v, is gone", r, e.Holder)
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
