package owner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// has returns an owner to which the state of ranges has come, under tickets from
// 1 on, and which has confirmed them all. The leader still speaks of them.
func has(t *testing.T, ranges ...leasehold.Range) *server {
	t.Helper()
	s := newMover(t)
	var orders []any
	for i, r := range ranges {
		orders = append(orders, arrival(byte(i+1), r.Start, r.Limit))
	}
	s.hear(1, s.orders(nil, orders...))
	for i := range ranges {
		s.step(1, owner.Imported{Ticket: ticket(byte(i + 1))})
	}
	return s
}

func span(start, limit leasehold.Key) leasehold.Range {
	return leasehold.Range{Start: start, Limit: limit}
}

// A target lets state in, confirms that it has all of it, and serves the range
// when it has the lease and its application has put the state in its place.
func TestArrival(t *testing.T) {
	s := newMover(t, lease(0, 5, 1))
	s.want(s.hear(1, s.orders(renewals(lease(0, 5, 1)), arrival(1, 10, 20))), "expect 1")
	s.want(s.hear(1, s.orders(renewals(lease(0, 5, 1)), arrival(1, 10, 20))))
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "serve 0-5@1, await 10-20", "confirm 1")
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "confirm 1") // the first may have been lost

	s.want(s.hear(1, s.orders([]protocol.Offer{offer(0, 5, 1, false), withState(1, lease(10, 20, 2))})),
		"install 10-20@2 under 1", "serve 0-5@1, await 10-20", "send 0-5@1 10-20@2")
	s.wantLeases(lease(0, 5, 1))
	s.wantReports() // it has a lease for it now
	s.want(s.step(2, owner.Installed{Ticket: ticket(1)}), "serve 0-5@1 10-20@2", "granted 10-20@2")
	s.want(s.hear(2, s.orders(renewals(lease(0, 5, 1), lease(10, 20, 2)))), "serve 0-5@1 10-20@2")
	s.want(s.step(3, owner.Installed{Ticket: ticket(1)})) // that was all
}

// HoldRequest, rule 8: imports are what has been confirmed and could still be
// put in place, and no other.
func TestImportsAreWhatIsConfirmed(t *testing.T) {
	s := newMover(t)
	s.hear(1, s.orders(nil, arrival(1, 0, 10), arrival(2, 10, 20), arrival(3, 20, 30), arrival(4, 30, 40)))
	for _, n := range []byte{1, 3, 3} {
		s.step(1, owner.Imported{Ticket: ticket(n)})
	}
	s.speak()
	s.wantReports("has 1", "has 3")
	if in := s.request.Imports[0]; in.Range != span(0, 10) || in.Since != (protocol.Since{LSN: 4, Newest: 3}) {
		t.Errorf("it says %+v, which is not what the leader said", in)
	}
}

// Of what has come for a key the newest counts: the rest is discarded when that
// is confirmed, and cannot come into use any more.
func TestNewerStateSupersedesOlder(t *testing.T) {
	s := newMover(t)
	s.hear(1, s.orders(nil, arrival(1, 0, 10), arrival(2, 5, 20), arrival(3, 20, 30)))
	s.step(1, owner.Imported{Ticket: ticket(3)})
	s.want(s.step(1, owner.Imported{Ticket: ticket(2)}), "serve nothing, await 5-20, await 20-30", "confirm 2")
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "discard 2", "serve nothing, await 0-10, await 20-30", "confirm 1")
	s.speak()
	s.wantReports("has 1", "has 3")
	actions := s.hear(s.wake-1, s.orders([]protocol.Offer{withState(2, lease(5, 20, 5))}))
	if !does(actions, "state missing") {
		t.Errorf("it does %v", actions)
	}
}

// Grant, rule 18: a lease with a ticket is refused by who does not have all that
// came under that ticket, confirmed, for all of that range.
func TestTicketWithoutStateIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		have func(t *testing.T) *server
	}{
		{"nothing was ever said of it", func(t *testing.T) *server { return newMover(t) }},
		{"nothing has come", func(t *testing.T) *server {
			s := newMover(t)
			s.hear(1, s.orders(nil, arrival(1, 10, 20)))
			return s
		}},
		{"something came under another ticket", func(t *testing.T) *server {
			s := newMover(t)
			s.hear(1, s.orders(nil, arrival(2, 10, 20)))
			s.step(1, owner.Imported{Ticket: ticket(2)})
			return s
		}},
		{"something came for another range", func(t *testing.T) *server { return has(t, span(20, 30)) }},
		{"something came for a part of it", func(t *testing.T) *server { return has(t, span(10, 19)) }},
		{"it has been used", func(t *testing.T) *server {
			s := has(t, span(10, 20))
			s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 4))}))
			s.step(1, owner.Installed{Ticket: ticket(1)})
			s.hear(1, s.orders(nil)) // recalled
			return s
		}},
		{"it could not be put in its place", func(t *testing.T) *server {
			s := has(t, span(10, 20))
			s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 4))}))
			s.step(1, owner.Installed{Ticket: ticket(1), Failed: true})
			s.hear(1, s.orders(nil))
			return s
		}},
		{"it is too old", func(t *testing.T) *server {
			s := has(t, span(10, 20))
			s.hear(1, s.orders(nil)) // the leader no longer speaks of it
			for now := mono.Instant(1); now < mono.Instant(25*time.Second); {
				now = s.speak()
				s.hear(now, s.orders(nil))
			}
			return s
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.have(t)
			actions := s.hear(s.wake-1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}))
			if !does(actions, "state missing") || does(actions, "install 10-20@5 under 1") || does(actions, "granted 10-20@5") {
				t.Errorf("it does %v", actions)
			}
			s.wantLeases()
			s.wantSaid()
		})
	}
}

// does reports whether an action is among others.
func does(actions []owner.Action, what string) bool {
	return slices.ContainsFunc(actions, func(a owner.Action) bool { return describe(a) == what })
}

// Rule 18: state that is not in its place yet is served by nobody, although the
// leader knows that the owner has the lease; and if it cannot be put there, the
// owner lets go of the lease. The application may have put a part of it there, and
// is told.
func TestInstallFails(t *testing.T) {
	s := has(t, span(10, 20))
	s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}))
	s.hear(1, s.orders(renewals(lease(10, 20, 5))))
	s.wantLeases()
	s.want(s.step(2, owner.Installed{Ticket: ticket(1), Failed: true}), "import failed", "serve nothing", "revoked 10-20@5: released", "send nothing")

	s = has(t, span(10, 20))
	s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5)), offer(30, 40, 6, true)}))
	rest := renewals(lease(10, 13, 5), lease(15, 20, 5), lease(30, 40, 6))
	s.want(s.hear(2, s.orders(rest)), "serve 30-40@6, await 10-13, await 15-20", "revoked 13-15@5: released", "send 10-13@5 15-20@5 30-40@6")
	s.hear(2, s.orders(rest))
	s.want(s.step(3, owner.Installed{Ticket: ticket(1), Failed: true}), "import failed", "serve 30-40@6", "revoked 10-13@5 15-20@5: released", "send 30-40@6")
}

// Rule 18, the other way round: a ticket is good even if the generation is not
// the newest. A lease that went from here and came back while others were
// granted is such a one.
func TestTicketOfAnOlderGeneration(t *testing.T) {
	s := has(t, span(10, 20))
	s.hear(1, s.orders([]protocol.Offer{offer(30, 40, 9, true)}, arrival(1, 10, 20)))
	s.want(s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5)), offer(30, 40, 9, false)})),
		"install 10-20@5 under 1", "serve 30-40@9, await 10-20", "send 10-20@5 30-40@9")
}

// A ticket is good for one lease: what came under it cannot be the state of two.
func TestTicketIsGoodForOneLease(t *testing.T) {
	s := has(t, span(10, 20))
	s.want(s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 15, 5)), withState(1, lease(15, 20, 6))})),
		"install 10-15@5 under 1", "state missing", "serve nothing, await 10-15", "send 10-15@5")
}

// Whatever else is going on, a lease whose state is not in its place stays
// hidden: also when the leader speaks of the move no more, and when a part of
// the lease is recalled.
func TestHiddenWhileInstalling(t *testing.T) {
	s := has(t, span(10, 20))
	s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}, arrival(1, 10, 20)))
	s.want(s.hear(2, s.orders(renewals(lease(10, 20, 5)))), "serve nothing, await 10-20")
	s.want(s.hear(2, s.orders(renewals(lease(10, 13, 5), lease(15, 20, 5)))), "serve nothing, await 10-13, await 15-20", "revoked 13-15@5: released", "send 10-13@5 15-20@5")
	s.want(s.hear(2, s.orders(append(renewals(lease(10, 13, 5), lease(15, 20, 5)), offer(20, 30, 6, true)))),
		"serve 20-30@6, await 10-13, await 15-20", "granted 20-30@6", "send 10-13@5 15-20@5 20-30@6")
	s.want(s.step(3, owner.Installed{Ticket: ticket(1)}), "serve 10-13@5 15-20@5 20-30@6", "granted 10-13@5 15-20@5")
}

// When all of the lease has ended, what came with it is of no use. The application
// may have put it in its place: it is told, and why. What it does with it after
// that does not matter any more.
func TestInstallingLeaseEnds(t *testing.T) {
	for cause, end := range map[leasehold.Cause]func(*server) []owner.Action{
		leasehold.CauseReleased: func(s *server) []owner.Action { return s.hear(2, s.orders(nil)) },
		leasehold.CauseExpired:  func(s *server) []owner.Action { return s.step(2, owner.Slept{}) },
		leasehold.CauseLeft:     func(s *server) []owner.Action { return s.step(2, owner.Leave{}) },
	} {
		t.Run(cause.String(), func(t *testing.T) {
			s := has(t, span(10, 20))
			s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5)), offer(30, 40, 6, true)}))
			actions := end(s)
			if !does(actions, "discard 1") || !does(actions, "revoked 10-20@5 30-40@6: "+cause.String()) {
				t.Errorf("it does %v", actions)
			}
			s.want(s.step(3, owner.Installed{Ticket: ticket(1)}))
			s.wantLeases()
			s.wantSaid()
		})
	}
}

// Rule 19: without a ticket a lease begins with nothing, and rule 21: what has
// come for its keys is discarded, for it may be old. What has come for others
// stays, and so does what has yet to come.
func TestFreshOfferSupersedesState(t *testing.T) {
	for _, c := range []struct {
		name  string
		offer protocol.Offer
		want  []string
	}{
		{"without a ticket", offer(15, 25, 7, true), []string{"discard 1", "discard 2", "serve 15-25@7, await 40-50", "granted 15-25@7", "send 15-25@7"}},
		{"with a ticket", withState(2, lease(20, 25, 7)), []string{"install 20-25@7 under 2", "serve nothing, await 10-20, await 20-25, await 40-50", "send 20-25@7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newMover(t)
			named := []any{arrival(1, 10, 20), arrival(2, 20, 30), arrival(3, 40, 50), arrival(4, 12, 18)}
			s.hear(1, s.orders(nil, named...))
			for _, n := range []byte{1, 2, 3} {
				s.step(1, owner.Imported{Ticket: ticket(n)})
			}
			s.want(s.hear(1, s.orders([]protocol.Offer{c.offer}, arrival(3, 40, 50), arrival(4, 12, 18))), c.want...)
			for _, in := range s.request.Imports {
				if in.Range.Overlaps(c.offer.Range) {
					t.Errorf("it still has %+v", in)
				}
			}
			if actions := s.step(1, owner.Imported{Ticket: ticket(4)}); !does(actions, "confirm 4") {
				t.Errorf("when the rest has come it does %v", actions)
			}
		})
	}
}

// A renewal is not a fresh offer: what comes for a range that the owner holds, as
// it does when it moves state to itself, is kept.
func TestRenewalSupersedesNothing(t *testing.T) {
	s := newMover(t, lease(10, 20, 1))
	s.hear(1, s.orders(renewals(lease(10, 20, 1)), arrival(1, 10, 20)))
	s.step(1, owner.Imported{Ticket: ticket(1)})
	s.want(s.hear(1, s.orders(renewals(lease(10, 15, 1)), arrival(1, 10, 20))),
		"serve 10-15@1, await 10-20", "revoked 15-20@1: released", "send 10-15@1")
	s.wantReports("has 1")
}

// Rule 20: what is confirmed is kept while the leader names it, and for twice
// the lease, stretched by the drift, after that: its successor may come to know
// of the move from the source.
func TestConfirmedStateIsKept(t *testing.T) {
	s := has(t, span(10, 20))
	now := mono.Instant(1)
	var end mono.Instant
	for now < mono.Instant(time.Minute) {
		s.hear(now, s.orders(nil, arrival(1, 10, 20)))
		end = now.Add(24 * time.Second)
		now = s.speak()
		s.wantReports("has 1")
	}
	s.hear(now, s.orders(nil)) // not named any more
	for now = s.speak(); now < end; now = s.speak() {
		s.wantReports("has 1")
		s.hear(now, s.orders(nil))
		if now < end && s.wake > end {
			t.Errorf("at %v it wants to be woken at %v, after %v", now, s.wake, end)
			break
		}
		if s.wake == end {
			s.want(s.did(s.machine.Advance(end - 1)))
			s.want(s.did(s.machine.Advance(end)), "discard 1", "serve nothing")
		}
	}
	s.wantReports()
}

// What the next leader names again is kept for as long as it does so.
func TestConfirmedStateIsNamedAgain(t *testing.T) {
	s := has(t, span(10, 20))
	s.hear(1, s.orders(nil))
	now := mono.Instant(1)
	for now < mono.Instant(time.Minute) {
		now = s.speak()
		s.wantReports("has 1")
		s.hear(now, s.orders(nil, arrival(1, 10, 20)))
	}
}

// Each leader gets the whole time to learn of the move, counted from its first answer.
func TestConfirmedStateIsKeptForEachLeader(t *testing.T) {
	s := has(t, span(10, 20))
	now := s.speak()
	for term := leasehold.Term(2); term < 6; term++ {
		for began := now; now < began.Add(20*time.Second); now = s.speak() {
			r := s.orders(nil)
			r.Term = term
			s.hear(now, r)
			s.wantReports("has 1")
		}
	}
}

// A leader may wait for leases that were granted before they were made shorter. So does the target.
func TestConfirmedStateOutlastsLongerLeases(t *testing.T) {
	s := has(t, span(10, 20))
	now := s.speak()
	for end := now.Add(24 * time.Second); now < end; now = s.speak() {
		s.wantReports("has 1")
		r := s.orders(nil)
		r.Term, r.Timing = 2, protocol.Timing{Lease: 2 * time.Second, Renew: 500 * time.Millisecond, Drift: r.Timing.Drift}
		s.hear(now, r)
	}
	s.wantReports()
}

// A process that slept discards what it was sent: its memory may be that of a copy, and older than what its
// session has said and done since.
func TestSleeperDiscardsConfirmedState(t *testing.T) {
	s := has(t, span(10, 20), span(30, 40))
	s.hear(1, s.orders([]protocol.Offer{withState(2, lease(30, 40, 7))}, arrival(1, 10, 20), arrival(3, 50, 60)))
	s.want(s.step(2, owner.Slept{}), "slept", "discard 1", "discard 2", "serve nothing", "revoked 30-40@7: expired", "send nothing")
	s.wantReports()
}

// What is not confirmed is discarded at once when nobody speaks of it, and what
// comes under an unknown ticket is not confirmed.
func TestUnconfirmedStateIsDiscarded(t *testing.T) {
	s := newMover(t)
	s.hear(1, s.orders(nil, arrival(1, 10, 20)))
	s.want(s.hear(1, s.orders(nil)), "discard 1")
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "discard 1")
	s.want(s.step(1, owner.Imported{Ticket: ticket(9)}), "discard 9")
}

// An owner that cannot take state, or leaves, expects none.
func TestNothingIsExpected(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply())
	s.want(s.hear(1, s.orders(nil, arrival(1, 10, 20))))
	s = newMover(t)
	s.step(1, owner.Leave{})
	s.want(s.hear(1, s.orders(nil, arrival(1, 10, 20))))
}

// However much state is announced, what a request says about it is bounded.
func TestArrivalsAreBounded(t *testing.T) {
	s := newMover(t)
	for round := range byte(3) {
		var orders []any
		for i := range leasehold.Key(protocol.MaxMoves) {
			a := arrival(round+1, i, i+1)
			a.Ticket[1] = byte(i)
			orders = append(orders, a)
		}
		for _, act := range s.hear(1, s.orders(nil, orders...)) {
			if e, ok := act.(owner.Expect); ok {
				s.step(1, owner.Imported{Ticket: e.Ticket})
			}
		}
	}
	s.speak()
	if n := len(s.request.Imports); n != protocol.MaxMoves {
		t.Errorf("it has %d imports, want %d", n, protocol.MaxMoves)
	}
	if err := s.request.Validate(protocol.DefaultLimits); err != nil {
		t.Error(err)
	}
}

// A range whose state is not in its place yet can be asked for by the next owner
// already: it is sent as soon as it is there.
func TestDepartureWaitsForItsState(t *testing.T) {
	s := has(t, span(10, 20))
	s.hear(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}))
	s.want(s.hear(2, s.orders(renewals(lease(10, 20, 5)), departure(2, 10, 20))), "serve nothing, await 10-20")
	s.want(s.step(3, owner.Installed{Ticket: ticket(1)}), "serve 10-20@5", "granted 10-20@5", "start 2")
}
