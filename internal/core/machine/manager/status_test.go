package manager_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// sendMoving is send for an owner that can move state.
func (p *pool) sendMoving(o *player, parting bool, reports ...protocol.MoveReport) {
	o.seq++
	p.step(manager.Request{LeaseRequest: &protocol.LeaseRequest{
		Namespace: poolNamespace, Holder: o.holder, Seq: o.seq, Mover: o.holder.Addr, Moves: reports, Parting: parting,
		Term: o.term, Heard: o.lastAck, Applied: o.lastAck, Leases: o.leases,
	}})
}

// settleMoving is settle for owners that can move state, and make no progress with it. It returns the newest reply
// to each.
func (p *pool) settleMoving() map[leasehold.OwnerID]*protocol.LeaseReply {
	replies := map[leasehold.OwnerID]*protocol.LeaseReply{}
	for p.committing || len(p.queue) > 0 {
		if p.committing {
			p.committing = false
			p.step(manager.Committed{Outcome: storage.Done})
			continue
		}
		o := p.queue[0]
		p.queue = p.queue[1:]
		replies[o.holder.Owner] = o.unread
		if o.read() {
			p.sendMoving(o, false)
		}
	}
	return replies
}

// Moves in progress are listed before waiting moves, with the report of the source, and each owner with the numbers
// of its moves.
func TestStatusOfMoves(t *testing.T) {
	p := newPoolWith(t, partition.Consistent{VirtualNodes: 16}, &storage.State{})
	join := func(i int) *player {
		o := &player{holder: poolHolder(i)}
		p.players[o.holder.Session] = o
		p.sendMoving(o, false)
		return o
	}
	a := join(1)
	p.settleMoving()
	b := join(2)
	replies := p.settleMoving()
	departures := replies[a.holder.Owner].Departures
	if len(departures) != 4 {
		t.Fatalf("%d moves in progress, want the default of 4", len(departures))
	}
	p.now = p.now.Add(time.Second)
	p.sendMoving(a, false, protocol.MoveReport{
		Ticket: departures[1].Ticket, Range: departures[1].Range, To: departures[1].To, State: protocol.MoveCopying, Records: 3, Bytes: 99,
	})
	p.now = p.now.Add(time.Second)

	moves := p.machine.Moves(p.now, 1000)
	sizes := p.machine.Sizes()
	if sizes.Moves != 4 || sizes.Backlog == 0 || len(moves) != sizes.Moves+sizes.Backlog {
		t.Fatalf("%d listed, of %d in progress and %d waiting", len(moves), sizes.Moves, sizes.Backlog)
	}
	want := manager.Move{
		ID: departures[1].Ticket.Short(), Range: departures[1].Range, From: a.holder.Owner, To: b.holder.Owner,
		State: protocol.MoveCopying, Records: 3, Bytes: 99, Age: 2 * time.Second, Patience: 59 * time.Second,
		Reason: table.Joined,
	}
	if diff := cmp.Diff(want, moves[1]); diff != "" {
		t.Errorf("the reported move (-want +got):\n%s", diff)
	}
	for i, m := range moves {
		if begun := i < 4; begun != (m.ID != "") || m.From != a.holder.Owner || m.To != b.holder.Owner || !begun && m.Age != 0 {
			t.Errorf("move %d is %+v", i, m)
		}
	}
	if few := p.machine.Moves(p.now, 2); len(few) != 2 {
		t.Errorf("%d listed, want 2", len(few))
	}

	owners := p.machine.Owners(p.now)
	if o := owners[0]; o.Parting || o.Draining || !o.Mover || o.MovesOut != 4 || o.MovesIn != 0 {
		t.Errorf("the source is %+v", o)
	}
	if o := owners[1]; o.Parting || o.Draining || !o.Mover || o.MovesOut != 0 || o.MovesIn != 4 {
		t.Errorf("the target is %+v", o)
	}
	p.settleMoving()
	p.sendMoving(a, true)
	if o := p.machine.Owners(p.now)[0]; !o.Parting {
		t.Errorf("when it is leaving, the source is %+v", o)
	}
	p.step(manager.Order{Kind: manager.OrderDrain, Owner: b.holder.Owner})
	if o := p.machine.Owners(p.now)[1]; !o.Draining {
		t.Errorf("while it is drained, the target is %+v", o)
	}
}
