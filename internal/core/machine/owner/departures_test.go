package owner_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A source copies while it serves, stops, and lets go when its target has
// confirmed. It has stopped before it sends a request that lacks the lease (3),
// and says DONE in that very request (5).
func TestDeparture(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.want(s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))), "start 1")
	now := s.speak()
	s.wantReports("1 copying")
	s.hear(now, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.want(s.step(now, owner.Copied{Ticket: ticket(1)}), "serve 0-5@1 10-20@1, keep 5-10@1", "stop 1")

	now = s.speak()
	s.wantReports("1 stopped")
	s.wantSaid(lease(0, 20, 1)) // it has not let go
	s.want(s.hear(now, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))), "serve 0-5@1 10-20@1, keep 5-10@1")

	s.want(s.step(now, owner.Confirmed{Ticket: ticket(1)}),
		"serve 0-5@1 10-20@1", "revoked 5-10@1: moved", "end 1", "send 0-5@1 10-20@1")
	s.wantReports("1 done")
}

// Rule 5: a confirmation from before the range was stopped is worth nothing, for
// what is written after it would be lost.
func TestNotDoneBeforeItHasStopped(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.want(s.step(1, owner.Confirmed{Ticket: ticket(1)}))
	s.speak()
	s.wantReports("1 copying")
	s.wantSaid(lease(0, 20, 1))
	s.wantLeases(lease(0, 20, 1))
}

// left returns an owner that has let go of 5 to 10 under ticket 1, and when.
func left(t *testing.T) *server {
	t.Helper()
	s := newMover(t, lease(0, 20, 1))
	s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.step(1, owner.Confirmed{Ticket: ticket(1)})
	s.wantReports("1 done")
	return s
}

// Rule 6: DONE is said in every request until a Grant that answers one names the
// departure no more.
func TestDoneIsSaidUntilRecorded(t *testing.T) {
	s := left(t)
	rest := renewals(lease(0, 5, 1), lease(10, 20, 1))
	now := mono.Instant(1)
	for range 3 { // the leader has not recorded it
		s.hear(now, s.orders(rest, departure(1, 5, 10)))
		now = s.speak()
		s.wantReports("1 done")
	}
	s.hear(now, s.orders(rest))
	s.speak()
	s.wantReports()
}

// Rule 6, to whoever leads: the next leader names the departure for as long as it
// has not recorded it, and so it is said to that one too.
func TestDoneIsSaidToTheNextLeader(t *testing.T) {
	s := left(t)
	rest := renewals(lease(0, 5, 1), lease(10, 20, 1))
	next := func(what ...any) *protocol.LeaseReply {
		r := s.orders(rest, what...)
		r.Term = 2
		return r
	}
	s.said = 0
	handed := departure(1, 5, 10)
	handed.Mover = ""
	s.hear(2, next(handed))
	s.wantReports("1 done")
	s.hear(3, next(handed))
	s.speak()
	s.wantReports("1 done")
	s.hear(s.wake-1, next())
	s.speak()
	s.wantReports()
}

// A request that was sent before the target had confirmed says nothing of it: an
// answer to that one, which names the departure no more, is no proof.
func TestAnswerToAnEarlierRequestProvesNothing(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	now := s.speak()
	s.step(now, owner.Copied{Ticket: ticket(1)})
	s.step(now, owner.Confirmed{Ticket: ticket(1)})
	s.hear(now, s.orders(renewals(lease(0, 20, 1)))) // it has been cancelled meanwhile
	s.wantReports("1 done")
	s.wantSaid(lease(0, 5, 1), lease(10, 20, 1))
}

// What it says is of the leases that it began with, and not of what it may get
// later.
func TestReportNamesItsGenerations(t *testing.T) {
	s := newMover(t, lease(0, 10, 3), lease(10, 20, 2))
	s.hear(1, s.orders(renewals(lease(0, 10, 3), lease(10, 20, 2)), departure(1, 5, 15)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.step(1, owner.Confirmed{Ticket: ticket(1)})
	if got := s.request.Moves[0].Newest; got != 3 {
		t.Errorf("the newest of what it let go of is %d, want 3", got)
	}
}

// Rule 6, when the first message of the next leader is dropped for a race: its
// answer to what is said after that is enough.
func TestDoneIsSaidAgainAfterARace(t *testing.T) {
	s := left(t)
	rest := renewals(lease(0, 5, 1), lease(10, 20, 1))
	s.said = 0
	crossed := s.orders(rest)
	crossed.Term, crossed.Echo = 2, s.request.Seq-1
	s.hear(2, crossed) // of the new term, and dropped
	now := s.speak()
	s.wantReports("1 done")
	answer := s.orders(rest)
	answer.Term = 2
	s.hear(now, answer)
	s.speak()
	s.wantReports()
}

// Rules 6 and 16: once it has said that it lacks the lease it never serves the
// range again, whatever the next leader makes of it.
func TestDoneIsNeverServedAgain(t *testing.T) {
	for name, renewed := range map[string][]protocol.Offer{
		"renewed":           renewals(lease(0, 20, 1)),
		"granted once more": grants(lease(0, 20, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			s := left(t)
			r := s.orders(renewed)
			r.Term = 2
			s.hear(2, r)
			for _, l := range s.machine.View().Leases {
				if l.Range.Overlaps(leasehold.Range{Start: 5, Limit: 10}) {
					t.Errorf("it serves %v", l)
				}
			}
		})
	}
}

// Rule 7: what was stopped and is served again has changed, so that the target's
// copy is old. However late the confirmation comes, it is FAILED.
func TestServedAgainIsFailed(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.want(s.step(1, owner.GaveUp{Ticket: ticket(1)}), "move failed", "serve 0-20@1", "end 1", "send 0-20@1")
	s.wantReports("1 failed")
	s.want(s.step(2, owner.Confirmed{Ticket: ticket(1)}), "end 1")
	s.want(s.step(2, owner.Copied{Ticket: ticket(1)}), "end 1")
	s.hear(2, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))) // the leader has not heard it yet
	s.wantLeases(lease(0, 20, 1))
	now := s.speak()
	s.wantReports("1 failed")
	s.hear(now, s.orders(renewals(lease(0, 20, 1))))
	s.speak()
	s.wantReports()
}

// Rule 16: a departure that an applied Grant names no more is given up, and what
// was stopped is served again.
func TestDepartureCancelled(t *testing.T) {
	for name, stopped := range map[string]bool{"while it copies": false, "when it has stopped": true} {
		t.Run(name, func(t *testing.T) {
			s := newMover(t, lease(0, 20, 1))
			s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
			want := []string{"move cancelled", "end 1"}
			if stopped {
				s.step(1, owner.Copied{Ticket: ticket(1)})
				want = append(want, "serve 0-20@1")
			}
			s.want(s.hear(1, s.orders(renewals(lease(0, 20, 1)))), want...)
			s.wantLeases(lease(0, 20, 1))
			s.want(s.step(2, owner.Confirmed{Ticket: ticket(1)}), "end 1")
			s.speak()
			s.wantReports()
			s.wantSaid(lease(0, 20, 1))
		})
	}
}

// A message that crossed another is not applied, and cancels nothing.
func TestRaceCancelsNothing(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
	crossed := s.orders(renewals(lease(0, 20, 1)))
	crossed.Echo--
	s.want(s.hear(1, crossed), "race")
	s.speak()
	s.wantReports("1 copying")
}

// What cannot be sent has failed before it began.
func TestImpossibleDepartures(t *testing.T) {
	for _, c := range []struct {
		name  string
		order protocol.Departure
		spoil func(*server)
	}{
		{"of what is not held", departure(2, 15, 25), nil},
		{"of what is held with a gap", departure(2, 15, 35), nil},
		{"to nowhere", protocol.Departure{Ticket: ticket(2), Range: leasehold.Range{Start: 0, Limit: 5}, To: other}, nil},
		{"of what is on its way", departure(2, 8, 12), func(s *server) {
			s.hear(1, s.orders(renewals(lease(0, 20, 1), lease(30, 40, 2)), departure(1, 5, 10)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newMover(t, lease(0, 20, 1), lease(30, 40, 2))
			orders := []any{c.order}
			if c.spoil != nil {
				c.spoil(s)
				orders = []any{departure(1, 5, 10), c.order}
			}
			s.want(s.hear(1, s.orders(renewals(lease(0, 20, 1), lease(30, 40, 2)), orders...)),
				"move impossible", "send 0-20@1 30-40@2") // the leader hears of it at once
			reports := []string{"2 failed"}
			if c.spoil != nil {
				reports = []string{"1 copying", "2 failed"}
			}
			s.wantReports(reports...)
			s.wantLeases(lease(0, 20, 1), lease(30, 40, 2))
		})
	}
}

// An owner that has named no mover sends nothing to anyone.
func TestDepartureWithoutMover(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply(grants(lease(0, 20, 1))...))
	s.want(s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10), arrival(2, 30, 40))), "move impossible", "send 0-20@1")
	s.wantReports("1 failed")
}

// A move whose lease ends is over, and is never said to be done: the leader may
// have given the range to another.
func TestDepartureEndsWithItsLease(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*server) []owner.Action
		want []string
	}{
		{"recalled", func(s *server) []owner.Action {
			return s.hear(2, s.orders(renewals(lease(0, 7, 1), lease(10, 20, 1)), departure(1, 5, 10)))
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
			s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10)))
			s.step(1, owner.Copied{Ticket: ticket(1)})
			s.want(c.end(s), c.want...)
			s.want(s.step(s.wake-1, owner.Confirmed{Ticket: ticket(1)}), "end 1")
			for _, m := range s.request.Moves {
				if m.State == protocol.MoveDone {
					t.Errorf("it says %+v", m)
				}
			}
		})
	}
}

// What is said about a move that is done stays when the other leases end.
func TestDoneOutlivesOtherLeases(t *testing.T) {
	s := left(t)
	s.step(2, owner.Slept{})
	s.wantReports("1 done")
	s.step(3, owner.Leave{})
	s.wantReports("1 done")
	if !s.request.Leaving {
		t.Error("it does not leave")
	}
}

// However many moves the leader wants, no request has more than are allowed.
func TestDeparturesAreBounded(t *testing.T) {
	s := newMover(t, lease(0, 1000, 1))
	var orders []any
	for i := range leasehold.Key(2 * protocol.MaxMoves) {
		d := departure(1, i, i+1)
		d.Ticket[1], d.Ticket[2] = byte(i), byte(i>>8)
		orders = append(orders, d)
	}
	s.hear(1, s.orders(renewals(lease(0, 1000, 1)), orders...))
	s.speak()
	if n := len(s.request.Moves); n != protocol.MaxMoves {
		t.Errorf("it has %d moves, want %d", n, protocol.MaxMoves)
	}
	if err := s.request.Validate(protocol.DefaultLimits); err != nil {
		t.Error(err)
	}
}

// An order that is repeated is the same order.
func TestDepartureIsBegunOnce(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	s.want(s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))), "start 1")
	s.want(s.hear(1, s.orders(renewals(lease(0, 20, 1)), departure(1, 5, 10))))
	s.step(1, owner.Copied{Ticket: ticket(1)})
	s.want(s.step(1, owner.Copied{Ticket: ticket(1)}))
}
