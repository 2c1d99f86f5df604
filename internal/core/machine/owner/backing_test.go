package owner_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// What an owner says about the leaders that have counted on it decides what a
// leader without a table believes about moves. Leases here last 10 s.
const tenSeconds = mono.Instant(10 * time.Second)

// gaveAway returns an owner that has let go of a range at 1, which it had moved.
func gaveAway(t *testing.T) *server {
	t.Helper()
	s := newMover(t, lease(0, 5, 1), lease(5, 9, 2))
	s.hear(1, s.orders(renewals(lease(0, 5, 1), lease(5, 9, 2)), departure(1, 5, 9)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.step(1, owner.Confirmed{Ticket: ticket(1)})
	return s
}

// backings returns what the newest request says about its first move and import.
func (s *server) backings() (moves, imports leasehold.Term) {
	s.t.Helper()
	if len(s.request.Moves) > 0 {
		moves = s.request.Moves[0].Backing
	}
	if len(s.request.Imports) > 0 {
		imports = s.request.Imports[0].Backing
	}
	return moves, imports
}

func TestSourceSaysWhoCountsOnIt(t *testing.T) {
	s := gaveAway(t)
	if got, _ := s.backings(); got != s.request.Term || got == 0 {
		t.Errorf("it says %d, its leader has term %d", got, s.request.Term)
	}
	t.Run("until its time has run out", func(t *testing.T) {
		s := gaveAway(t)
		s.did(s.machine.Advance(tenSeconds + 1))
		if got, _ := s.backings(); got != 0 {
			t.Errorf("it says %d", got)
		}
		r := s.reply()
		r.Departures = []protocol.Departure{departure(1, 5, 9)}
		s.hear(tenSeconds+2, r)
		if s.speak(); s.request.Moves[0].Backing != 0 {
			t.Errorf("it says %d after it was out of touch", s.request.Moves[0].Backing)
		}
	})
}

// A leader that collects gives time for leases, and changes nothing else.
func TestCollectingLeaderOnlyRenews(t *testing.T) {
	s := gaveAway(t)
	before := s.request.Term
	collect := func(now mono.Instant, term leasehold.Term) {
		r := s.reply(renewals(lease(0, 5, 1))...)
		r.Term, r.Seq, r.Collecting = term, 1, true
		s.hear(now, r)
	}
	collect(2, before+1)
	s.wantReports("1 done") // it is not told of it, and goes on saying so
	if got, _ := s.backings(); got != before {
		t.Errorf("it says %d, want the term of the leader before, %d", got, before)
	}
	s.wantLeases(lease(0, 5, 1))
	if s.machine.View().Until <= tenSeconds {
		t.Errorf("its leases end at %v", s.machine.View().Until)
	}
}

func TestTargetSaysWhoCountsOnIt(t *testing.T) {
	s := has(t, span(5, 9))
	s.hear(2, s.orders(nil, arrival(1, 5, 9)))
	s.speak()
	if _, got := s.backings(); got != s.request.Term || got == 0 {
		t.Errorf("it says %d, its leader has term %d", got, s.request.Term)
	}
	s.hear(s.wake-1, s.orders(nil)) // the leader speaks of it no more
	s.speak()
	s.wantReports("has 1")
	if _, got := s.backings(); got != 0 {
		t.Errorf("it says %d, although the leader does not count on it", got)
	}
}
