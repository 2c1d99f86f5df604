package owner_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// idle sets Idle: the leader has nothing left to move.
func idle(r *protocol.LeaseReply) *protocol.LeaseReply {
	r.Idle = true
	return r
}

// An owner without leases, or without a Mover, does not wait for moves.
func TestPartAtOnce(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply(grants(lease(0, 20, 1))...))
	s.want(s.step(1, owner.Part{}), "parted")
	s = newMover(t)
	s.want(s.step(1, owner.Part{}), "parted")
	s.want(s.step(1, owner.Part{})) // Parted is emitted once
	s.receive(1, idle(s.orders(nil)))
}

// A parting owner sets Parting in every request, and serves its leases until a reply of the leader has Idle.
func TestPart(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.want(s.receive(1, idle(s.orders(renewals(lease(0, 20, 1)))))) // Part was not called
	s.want(s.step(1, owner.Part{}), "send 0-20@1")
	now := s.wake - 1
	for range 3 {
		if !s.request.Parting {
			t.Fatal("the request does not have Parting")
		}
		s.receive(now, s.orders(renewals(lease(0, 20, 1))))
		s.wantLeases(lease(0, 20, 1))
		now = s.nextRequest()
	}
	actions := s.receive(now, idle(s.orders(renewals(lease(0, 20, 1)))))
	if !does(actions, "parted") {
		t.Errorf("after Idle: actions %v, want parted", actions)
	}
	now = s.nextRequest()
	if actions := s.receive(now, idle(s.orders(renewals(lease(0, 20, 1))))); does(actions, "parted") {
		t.Error("parted twice")
	}
}

// The leader may send Idle before it knows of an import that was just confirmed, and that may be the only
// copy. The owner reports it first.
func TestPartWaitsUntilItsImportsAreKnown(t *testing.T) {
	s := newMover(t, lease(0, 5, 1))
	s.receive(1, s.orders(renewals(lease(0, 5, 1)), arrival(1, 10, 20)))
	s.step(1, owner.Part{})
	s.step(1, owner.Imported{Ticket: ticket(1)}) // after the outstanding request was sent
	s.want(s.receive(1, idle(s.orders(renewals(lease(0, 5, 1))))), "serve 0-5@1, await 10-20", "send 0-5@1")
	s.wantReports("has 1")
	if actions := s.receive(1, idle(s.orders(renewals(lease(0, 5, 1))))); !does(actions, "parted") {
		t.Errorf("after the import is reported: actions %v, want parted", actions)
	}
}

// An owner with an import and without leases waits, too.
func TestPartWithImportsAlone(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	if actions := s.step(1, owner.Part{}); does(actions, "parted") {
		t.Error("parted before the import is reported")
	}
}

// Requests repeat Draining of the last reply, so that the next leader knows of the operator's drain.
func TestDrainingIsRepeated(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	for _, on := range []bool{true, true, false} {
		r := s.orders(renewals(lease(0, 20, 1)))
		r.Draining = on
		s.receive(s.wake-1, r)
		s.nextRequest()
		if s.request.Draining != on {
			t.Errorf("Draining of the request is %t, want %t", s.request.Draining, on)
		}
		s.wantLeases(lease(0, 20, 1)) // served until they are moved
	}
}

// A source that has released a range sends a request at once or, if one is outstanding, after its
// reply: requests that cross a reply are dropped.
func TestDoneIsReportedAtOnce(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	now := s.nextRequest() // outstanding
	s.step(now, owner.Copied{Ticket: ticket(1)})
	s.want(s.step(now, owner.Confirmed{Ticket: ticket(1)}), "serve 0-5@1 10-20@1", "revoked 5-10@1: moved", "end 1")
	s.receive(now, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.wantReports("1 done")
	s.wantClaims(lease(0, 5, 1), lease(10, 20, 1))
}
