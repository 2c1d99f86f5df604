package owner_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A source copies the state while it serves, stops serving, and releases the lease after the target has
// confirmed. It stops serving before it sends a request without the lease (rule 3), and reports DONE
// in the same request (rule 5).
func TestDeparture(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.want(s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))), "start 1")
	now := s.nextRequest()
	s.wantReports("1 copying")
	s.receive(now, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.want(s.step(now, owner.Copied{Ticket: ticket(1)}), "serve 0-5@1 10-20@1, keep 5-10@1", "stop 1")

	now = s.nextRequest()
	s.wantReports("1 stopped")
	s.wantClaims(lease(0, 20, 1)) // not released yet
	s.want(s.receive(now, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))), "serve 0-5@1 10-20@1, keep 5-10@1")

	s.want(s.step(now, owner.Confirmed{Ticket: ticket(1)}),
		"serve 0-5@1 10-20@1", "revoked 5-10@1: moved", "end 1", "send 0-5@1 10-20@1")
	s.wantReports("1 done")
}

// Rule 5: a confirmation before the range is stopped is ignored, because later writes would be
// lost.
func TestNotDoneBeforeItHasStopped(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.want(s.step(1, owner.Confirmed{Ticket: ticket(1)}))
	s.nextRequest()
	s.wantReports("1 copying")
	s.wantClaims(lease(0, 20, 1))
	s.wantLeases(lease(0, 20, 1))
}

// doneSource returns an owner that has moved 5 to 10 under ticket 1.
func doneSource(t *testing.T) *server {
	t.Helper()
	s := newMover(t, lease(0, 20, 1))
	s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.step(1, owner.Confirmed{Ticket: ticket(1)})
	s.wantReports("1 done")
	return s
}

// Rule 6: every request reports DONE until a Grant in reply to one of them omits the
// departure.
func TestDoneIsReportedUntilRecorded(t *testing.T) {
	s := doneSource(t)
	rest := renewals(lease(0, 5, 1), lease(10, 20, 1))
	now := mono.Instant(1)
	for range 3 { // the leader has not recorded it
		s.receive(now, s.orders(rest, departure(1, 5, 10)))
		now = s.nextRequest()
		s.wantReports("1 done")
	}
	s.receive(now, s.orders(rest))
	s.nextRequest()
	s.wantReports()
}

// Rule 6 with a new leader: it orders the departure until it has recorded its end, so DONE is reported to it,
// too.
func TestDoneIsReportedToTheNextLeader(t *testing.T) {
	s := doneSource(t)
	rest := renewals(lease(0, 5, 1), lease(10, 20, 1))
	next := func(what ...any) *protocol.LeaseReply {
		r := s.orders(rest, what...)
		r.Term = 2
		return r
	}
	s.lastSeq = 0
	inherited := departure(1, 5, 10)
	inherited.Mover = ""
	s.receive(2, next(inherited))
	s.wantReports("1 done")
	s.receive(3, next(inherited))
	s.nextRequest()
	s.wantReports("1 done")
	s.receive(s.wake-1, next())
	s.nextRequest()
	s.wantReports()
}

// A reply to a request that was sent before the target confirmed, and that omits the departure, does not prove
// that the end is recorded.
func TestReplyToAnEarlierRequestProvesNothing(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	now := s.nextRequest()
	s.step(now, owner.Copied{Ticket: ticket(1)})
	s.step(now, owner.Confirmed{Ticket: ticket(1)})
	s.receive(now, s.orders(renewals(lease(0, 20, 1)))) // the leader has cancelled the move
	s.wantReports("1 done")
	s.wantClaims(lease(0, 5, 1), lease(10, 20, 1))
}

// A report contains the newest generation of the leases at the start of the move, not of later leases.
func TestReportNamesItsGenerations(t *testing.T) {
	s := newMover(t, lease(0, 10, 3), lease(10, 20, 2))
	s.receive(1, s.orders(renewals(lease(0, 10, 3), lease(10, 20, 2)), departure(1, 5, 15)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.step(1, owner.Confirmed{Ticket: ticket(1)})
	if got := s.request.Moves[0].Newest; got != 3 {
		t.Errorf("Newest of the report is %d, want 3", got)
	}
}

// Rule 6 if the first reply of a new leader is dropped as a race: its reply to the next request is
// sufficient.
func TestDoneIsReportedAgainAfterARace(t *testing.T) {
	s := doneSource(t)
	rest := renewals(lease(0, 5, 1), lease(10, 20, 1))
	s.lastSeq = 0
	crossed := s.orders(rest)
	crossed.Term, crossed.Echo = 2, s.request.Seq-1
	s.receive(2, crossed) // of the new term, and dropped
	now := s.nextRequest()
	s.wantReports("1 done")
	answer := s.orders(rest)
	answer.Term = 2
	s.receive(now, answer)
	s.nextRequest()
	s.wantReports()
}

// Rules 6 and 16: after a request without the lease the source never serves the range again, whatever the next
// leader decides.
func TestDoneIsNeverServedAgain(t *testing.T) {
	for name, renewed := range map[string][]protocol.Offer{
		"renewed":       renewals(lease(0, 20, 1)),
		"granted again": grants(lease(0, 20, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			s := doneSource(t)
			r := s.orders(renewed)
			r.Term = 2
			s.receive(2, r)
			for _, l := range s.machine.View().Leases {
				if l.Range.Overlaps(leasehold.Range{Start: 5, Limit: 10}) {
					t.Errorf("it serves %v, which was moved", l)
				}
			}
		})
	}
}

// Rule 7: a range that was stopped and is served again may have changed, so the target's copy is stale. A late
// confirmation does not turn FAILED into DONE.
func TestServedAgainIsFailed(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.want(s.step(1, owner.GaveUp{Ticket: ticket(1)}), "move failed", "serve 0-20@1", "end 1", "send 0-20@1")
	s.wantReports("1 failed")
	s.want(s.step(2, owner.Confirmed{Ticket: ticket(1)}), "end 1")
	s.want(s.step(2, owner.Copied{Ticket: ticket(1)}), "end 1")
	s.receive(2, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))) // the leader has not received the report yet
	s.wantLeases(lease(0, 20, 1))
	now := s.nextRequest()
	s.wantReports("1 failed")
	s.receive(now, s.orders(renewals(lease(0, 20, 1))))
	s.nextRequest()
	s.wantReports()
}

// Rule 16: a departure that an applied Grant omits is cancelled, and its range is served again.
func TestDepartureCancelled(t *testing.T) {
	for name, stopped := range map[string]bool{"while copying": false, "after the stop": true} {
		t.Run(name, func(t *testing.T) {
			s := newMover(t, lease(0, 20, 1))
			s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
			want := []string{"move cancelled", "end 1"}
			if stopped {
				s.step(1, owner.Copied{Ticket: ticket(1)})
				want = append(want, "serve 0-20@1")
			}
			s.want(s.receive(1, s.orders(renewals(lease(0, 20, 1)))), want...)
			s.wantLeases(lease(0, 20, 1))
			s.want(s.step(2, owner.Confirmed{Ticket: ticket(1)}), "end 1")
			s.nextRequest()
			s.wantReports()
			s.wantClaims(lease(0, 20, 1))
		})
	}
}

// A reply that crossed a request is not applied and cancels no move.
func TestRaceCancelsNothing(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	crossed := s.orders(renewals(lease(0, 20, 1)))
	crossed.Echo--
	s.want(s.receive(1, crossed), "race")
	s.nextRequest()
	s.wantReports("1 copying")
}

// A departure that is impossible is reported as failed.
func TestImpossibleDepartures(t *testing.T) {
	for _, c := range []struct {
		name  string
		order protocol.Departure
		spoil func(*server)
	}{
		{"range not held", departure(2, 15, 25), nil},
		{"range held with a gap", departure(2, 15, 35), nil},
		{"target without a Mover", protocol.Departure{Ticket: ticket(2), Range: leasehold.Range{Start: 0, Limit: 5}, To: other}, nil},
		{"range already moving", departure(2, 8, 12), func(s *server) {
			s.receive(1, s.orders(renewals(lease(0, 20, 1), lease(30, 40, 2)), departure(1, 5, 10)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newMover(t, lease(0, 20, 1), lease(30, 40, 2))
			orders := []any{c.order}
			if c.spoil != nil {
				c.spoil(s)
				orders = []any{departure(1, 5, 10), c.order}
			}
			s.want(s.receive(1, s.orders(renewals(lease(0, 20, 1), lease(30, 40, 2)), orders...)),
				"move impossible", "send 0-20@1 30-40@2") // it is reported at once
			reports := []string{"2 failed"}
			if c.spoil != nil {
				reports = []string{"1 copying", "2 failed"}
			}
			s.wantReports(reports...)
			s.wantLeases(lease(0, 20, 1), lease(30, 40, 2))
		})
	}
}

// An owner without a Mover sends no state.
func TestDepartureWithoutMover(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply(grants(lease(0, 20, 1))...))
	s.want(s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10), arrival(2, 30, 40))), "joined", "move impossible", "send 0-20@1")
	s.wantReports("1 failed")
}

// A move ends with its lease and is never reported as done: the leader may have granted the range to
// another owner.
func TestDepartureEndsWithItsLease(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*server) []owner.Action
		want []string
	}{
		{"recalled", func(s *server) []owner.Action {
			return s.receive(2, s.orders(renewals(lease(0, 7, 1), lease(10, 20, 1)), departure(1, 5, 10)))
		}, []string{"end 1", "serve 0-7@1 10-20@1", "revoked 7-10@1: released", "move impossible", "send 0-7@1 10-20@1"}},
		{"kept too long", func(s *server) []owner.Action {
			s.did(s.machine.Advance(mono.Instant(20 * time.Second)))
			return s.did(s.machine.Advance(mono.Instant(2 * time.Hour)))
		}, []string{"kept too long", "end 1", "serve nothing", "revoked 0-20@1: expired", "leader silent", "send nothing"}},
		{
			"slept", func(s *server) []owner.Action { return s.step(2, owner.Slept{}) },
			[]string{"slept", "end 1", "serve nothing", "revoked 0-20@1: expired", "send nothing"},
		},
		{
			"left", func(s *server) []owner.Action { return s.step(2, owner.Leave{}) },
			[]string{"end 1", "serve nothing", "revoked 0-20@1: left", "send nothing"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newMover(t, lease(0, 20, 1))
			s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
			s.step(1, owner.Copied{Ticket: ticket(1)})
			s.want(c.end(s), c.want...)
			s.want(s.step(s.wake-1, owner.Confirmed{Ticket: ticket(1)}), "end 1")
			for _, m := range s.request.Moves {
				if m.State == protocol.MoveDone {
					t.Errorf("the request reports %+v", m)
				}
			}
		})
	}
}

// The report of a completed move continues after the other leases have ended.
func TestDoneOutlivesOtherLeases(t *testing.T) {
	s := doneSource(t)
	s.step(2, owner.Slept{})
	s.wantReports("1 done")
	s.step(3, owner.Leave{})
	s.wantReports("1 done")
	if !s.request.Leaving {
		t.Error("the request does not have Leaving")
	}
}

// The number of moves in a request is limited, however many the leader orders.
func TestDeparturesAreBounded(t *testing.T) {
	s := newMover(t, lease(0, 1000, 1))
	var orders []any
	for i := range leasehold.Key(2 * protocol.MaxMoves) {
		d := departure(1, i, i+1)
		d.Ticket[1], d.Ticket[2] = byte(i), byte(i>>8)
		orders = append(orders, d)
	}
	s.receive(1, s.orders(renewals(lease(0, 1000, 1)), orders...))
	s.nextRequest()
	if n := len(s.request.Moves); n != protocol.MaxMoves {
		t.Errorf("the request has %d moves, want %d", n, protocol.MaxMoves)
	}
	if err := s.request.Validate(protocol.DefaultLimits); err != nil {
		t.Error(err)
	}
}

// A repeated order does not start the move again.
func TestDepartureStartsOnce(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.want(s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))), "start 1")
	s.want(s.receive(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.want(s.step(1, owner.Copied{Ticket: ticket(1)}))
}
