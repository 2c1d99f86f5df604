package owner_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// The backing that an owner reports decides which moves a diskless leader completes. Leases in these tests
// last 10 s.
const tenSeconds = mono.Instant(10 * time.Second)

// releasedSource returns the source of a move that released its range at 1.
func releasedSource(t *testing.T) *server {
	t.Helper()
	s := newMover(t, lease(0, 5, 1), lease(5, 9, 2))
	s.receive(1, s.orders(renewals(lease(0, 5, 1), lease(5, 9, 2)), departure(1, 5, 9)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.step(1, owner.Confirmed{Ticket: ticket(1)})
	return s
}

// backings returns the backing of the first move and the first import in the newest request.
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

func TestSourceReportsItsBacking(t *testing.T) {
	s := releasedSource(t)
	if got, _ := s.backings(); got != s.request.Term || got == 0 {
		t.Errorf("backing is term %d, want that of the leader, %d", got, s.request.Term)
	}
	t.Run("none after contact is lost", func(t *testing.T) {
		s := releasedSource(t)
		s.did(s.machine.Advance(tenSeconds + 1))
		if got, _ := s.backings(); got != 0 {
			t.Errorf("backing is term %d, want 0", got)
		}
		r := s.reply()
		r.Departures = []protocol.Departure{departure(1, 5, 9)}
		s.receive(tenSeconds+2, r)
		if s.nextRequest(); s.request.Moves[0].Backing != 0 {
			t.Errorf("backing is term %d after contact is restored, want 0", s.request.Moves[0].Backing)
		}
	})
}

// A leader in its census renews leases, and changes nothing else.
func TestCollectingLeaderOnlyRenews(t *testing.T) {
	s := releasedSource(t)
	before := s.request.Term
	collect := func(now mono.Instant, term leasehold.Term) {
		r := s.reply(renewals(lease(0, 5, 1))...)
		r.Term, r.Seq, r.Collecting = term, 1, true
		s.receive(now, r)
	}
	collect(2, before+1)
	s.wantReports("1 done") // reported until a leader with a table has recorded it
	if got, _ := s.backings(); got != before {
		t.Errorf("backing is term %d, want that of the previous leader, %d", got, before)
	}
	s.wantLeases(lease(0, 5, 1))
	if s.machine.View().Until <= tenSeconds {
		t.Errorf("the deadline is %v, want after %v", s.machine.View().Until, tenSeconds)
	}
}

func TestTargetReportsItsBacking(t *testing.T) {
	s := importedTarget(t, span(5, 9))
	s.receive(2, s.orders(nil, arrival(1, 5, 9)))
	s.nextRequest()
	if _, got := s.backings(); got != s.request.Term || got == 0 {
		t.Errorf("backing is term %d, want that of the leader, %d", got, s.request.Term)
	}
	s.receive(s.wake-1, s.orders(nil)) // the leader has cancelled the move
	s.nextRequest()
	s.wantReports("has 1")
	if _, got := s.backings(); got != 0 {
		t.Errorf("backing is term %d after the move was cancelled, want 0", got)
	}
}
