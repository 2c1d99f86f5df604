package owner_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// idle makes a reply say that nothing is left that could be moved.
func idle(r *protocol.LeaseReply) *protocol.LeaseReply {
	r.Idle = true
	return r
}

// Who holds nothing, or cannot move what it holds, has nothing to wait for.
func TestPartAtOnce(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply(grants(lease(0, 20, 1))...))
	s.want(s.step(1, owner.Part{}), "parted")
	s = newMover(t)
	s.want(s.step(1, owner.Part{}), "parted")
	s.want(s.step(1, owner.Part{})) // it is said once
	s.hear(1, idle(s.orders(nil)))
}

// An owner that parts says so in every request, and waits until the leader says
// that there is nothing left to wait for. Meanwhile it serves.
func TestPart(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.want(s.hear(1, idle(s.orders(renewals(lease(0, 20, 1)))))) // it has not asked
	s.want(s.step(1, owner.Part{}), "send 0-20@1")
	now := s.wake - 1
	for range 3 {
		if !s.request.Parting {
			t.Fatal("it does not say so")
		}
		s.hear(now, s.orders(renewals(lease(0, 20, 1))))
		s.wantLeases(lease(0, 20, 1))
		now = s.speak()
	}
	actions := s.hear(now, idle(s.orders(renewals(lease(0, 20, 1)))))
	if !does(actions, "parted") {
		t.Errorf("told that it need not wait, it does %v", actions)
	}
	now = s.speak()
	if actions := s.hear(now, idle(s.orders(renewals(lease(0, 20, 1))))); does(actions, "parted") {
		t.Error("it has parted twice")
	}
}

// The leader may say that nothing is left before it knows of state that has just
// been confirmed. The source of that counts on us: the leader hears of it first.
func TestPartWaitsUntilItsImportsAreKnown(t *testing.T) {
	s := newMover(t, lease(0, 5, 1))
	s.hear(1, s.orders(renewals(lease(0, 5, 1)), arrival(1, 10, 20)))
	s.step(1, owner.Part{})
	s.step(1, owner.Imported{Ticket: ticket(1)}) // after the request that is under way
	s.want(s.hear(1, idle(s.orders(renewals(lease(0, 5, 1))))), "serve 0-5@1, await 10-20", "send 0-5@1")
	s.wantReports("has 1")
	if actions := s.hear(1, idle(s.orders(renewals(lease(0, 5, 1))))); !does(actions, "parted") {
		t.Errorf("now that the leader knows, it does %v", actions)
	}
}

// State that has come counts as something to wait for even if nothing is held.
func TestPartWithImportsAlone(t *testing.T) {
	s := has(t, span(10, 20))
	if actions := s.step(1, owner.Part{}); does(actions, "parted") {
		t.Error("it parts, and nobody has heard of what came")
	}
}

// An owner repeats what it was told about draining, so that the next leader
// knows what an operator wanted.
func TestDrainingIsRepeated(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	for _, on := range []bool{true, true, false} {
		r := s.orders(renewals(lease(0, 20, 1)))
		r.Draining = on
		s.hear(s.wake-1, r)
		s.speak()
		if s.request.Draining != on {
			t.Errorf("told %t, it says %t", on, s.request.Draining)
		}
		s.wantLeases(lease(0, 20, 1)) // it goes on until they are moved
	}
}

// A source that has let go speaks at once if it can, and otherwise as soon as it
// is answered: a message that crosses another would be dropped.
func TestDoneIsSaidAtOnce(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	now := s.speak() // under way
	s.step(now, owner.Copied{Ticket: ticket(1)})
	s.want(s.step(now, owner.Confirmed{Ticket: ticket(1)}), "serve 0-5@1 10-20@1", "revoked 5-10@1: moved", "end 1")
	s.hear(now, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.wantReports("1 done")
	s.wantSaid(lease(0, 5, 1), lease(10, 20, 1))
}
