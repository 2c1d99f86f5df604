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

// importedTarget returns an owner that has received and confirmed the state of ranges, under tickets from
// 1. The leader's orders still contain them.
func importedTarget(t *testing.T, ranges ...leasehold.Range) *server {
	t.Helper()
	s := newMover(t)
	var orders []any
	for i, r := range ranges {
		orders = append(orders, arrival(byte(i+1), r.Start, r.Limit))
	}
	s.receive(1, s.orders(nil, orders...))
	for i := range ranges {
		s.step(1, owner.Imported{Ticket: ticket(byte(i + 1))})
	}
	return s
}

func span(start, limit leasehold.Key) leasehold.Range {
	return leasehold.Range{Start: start, Limit: limit}
}

// A target receives state, confirms it, and serves the range after the lease is granted and the
// application has installed the state.
func TestArrival(t *testing.T) {
	s := newMover(t, lease(0, 5, 1))
	s.want(s.receive(1, s.orders(renewals(lease(0, 5, 1)), arrival(1, 10, 20))), "expect 1")
	s.want(s.receive(1, s.orders(renewals(lease(0, 5, 1)), arrival(1, 10, 20))))
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "serve 0-5@1, await 10-20", "confirm 1")
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "confirm 1") // the first may have been lost

	s.want(s.receive(1, s.orders([]protocol.Offer{offer(0, 5, 1, false), withState(1, lease(10, 20, 2))})),
		"install 10-20@2 under 1", "serve 0-5@1, await 10-20", "send 0-5@1 10-20@2")
	s.wantLeases(lease(0, 5, 1))
	s.wantReports() // it is a lease now, and no longer an import
	s.want(s.step(2, owner.Installed{Ticket: ticket(1)}), "serve 0-5@1 10-20@2", "granted 10-20@2")
	s.want(s.receive(2, s.orders(renewals(lease(0, 5, 1), lease(10, 20, 2)))), "serve 0-5@1 10-20@2")
	s.want(s.step(3, owner.Installed{Ticket: ticket(1)})) // a duplicate has no effect
}

// HoldRequest, rule 8: imports are exactly the confirmed arrivals that can still be
// installed.
func TestImportsAreWhatIsConfirmed(t *testing.T) {
	s := newMover(t)
	s.receive(1, s.orders(nil, arrival(1, 0, 10), arrival(2, 10, 20), arrival(3, 20, 30), arrival(4, 30, 40)))
	for _, n := range []byte{1, 3, 3} {
		s.step(1, owner.Imported{Ticket: ticket(n)})
	}
	s.nextRequest()
	s.wantReports("has 1", "has 3")
	if in := s.request.Imports[0]; in.Range != span(0, 10) || in.Since != (protocol.Since{LSN: 4, Newest: 3}) {
		t.Errorf("the request reports %+v, want range and Since of the order", in)
	}
}

// A confirmed import supersedes earlier ones of the same keys: these are discarded and cannot be
// installed.
func TestNewerStateSupersedesOlder(t *testing.T) {
	s := newMover(t)
	s.receive(1, s.orders(nil, arrival(1, 0, 10), arrival(2, 5, 20), arrival(3, 20, 30)))
	s.step(1, owner.Imported{Ticket: ticket(3)})
	s.want(s.step(1, owner.Imported{Ticket: ticket(2)}), "serve nothing, await 5-20, await 20-30", "confirm 2")
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "discard 2", "serve nothing, await 0-10, await 20-30", "confirm 1")
	s.nextRequest()
	s.wantReports("has 1", "has 3")
	actions := s.receive(s.wake-1, s.orders([]protocol.Offer{withState(2, lease(5, 20, 5))}))
	if !does(actions, "state missing") {
		t.Errorf("actions %v, want the grant rejected", actions)
	}
}

// Grant, rule 18: an owner rejects a lease with a ticket unless it has confirmed the state of the
// whole range under that ticket.
func TestTicketWithoutStateIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		have func(t *testing.T) *server
	}{
		{"unknown ticket", func(t *testing.T) *server { return newMover(t) }},
		{"no state received", func(t *testing.T) *server {
			s := newMover(t)
			s.receive(1, s.orders(nil, arrival(1, 10, 20)))
			return s
		}},
		{"state under another ticket", func(t *testing.T) *server {
			s := newMover(t)
			s.receive(1, s.orders(nil, arrival(2, 10, 20)))
			s.step(1, owner.Imported{Ticket: ticket(2)})
			return s
		}},
		{"state of another range", func(t *testing.T) *server { return importedTarget(t, span(20, 30)) }},
		{"state of a part of the range", func(t *testing.T) *server { return importedTarget(t, span(10, 19)) }},
		{"ticket already used", func(t *testing.T) *server {
			s := importedTarget(t, span(10, 20))
			s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 4))}))
			s.step(1, owner.Installed{Ticket: ticket(1)})
			s.receive(1, s.orders(nil)) // recalled
			return s
		}},
		{"install has failed", func(t *testing.T) *server {
			s := importedTarget(t, span(10, 20))
			s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 4))}))
			s.step(1, owner.Installed{Ticket: ticket(1), Failed: true})
			s.receive(1, s.orders(nil))
			return s
		}},
		{"import expired", func(t *testing.T) *server {
			s := importedTarget(t, span(10, 20))
			s.receive(1, s.orders(nil)) // the leader has cancelled the move
			for now := mono.Instant(1); now < mono.Instant(25*time.Second); {
				now = s.nextRequest()
				s.receive(now, s.orders(nil))
			}
			return s
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.have(t)
			actions := s.receive(s.wake-1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}))
			if !does(actions, "state missing") || does(actions, "install 10-20@5 under 1") || does(actions, "granted 10-20@5") {
				t.Errorf("actions %v, want the grant rejected", actions)
			}
			s.wantLeases()
			s.wantClaims()
		})
	}
}

// does reports whether the actions contain one with this description.
func does(actions []owner.Action, what string) bool {
	return slices.ContainsFunc(actions, func(a owner.Action) bool { return describe(a) == what })
}

// Rule 18: a lease is not served before its state is installed, although the leader counts it as held. If
// the installation fails, the owner releases the lease. The application is notified, because it may have
// installed a part.
func TestInstallFails(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}))
	s.receive(1, s.orders(renewals(lease(10, 20, 5))))
	s.wantLeases()
	s.want(s.step(2, owner.Installed{Ticket: ticket(1), Failed: true}), "import failed", "serve nothing", "revoked 10-20@5: released", "send nothing")

	s = importedTarget(t, span(10, 20))
	s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5)), offer(30, 40, 6, true)}))
	rest := renewals(lease(10, 13, 5), lease(15, 20, 5), lease(30, 40, 6))
	s.want(s.receive(2, s.orders(rest)), "serve 30-40@6, await 10-13, await 15-20", "revoked 13-15@5: released", "send 10-13@5 15-20@5 30-40@6")
	s.receive(2, s.orders(rest))
	s.want(s.step(3, owner.Installed{Ticket: ticket(1), Failed: true}), "import failed", "serve 30-40@6", "revoked 10-13@5 15-20@5: released", "send 30-40@6")
}

// Rule 18: a ticket is valid even if the generation is not the newest, for instance for a lease that was moved
// away and back while other leases were granted.
func TestTicketOfAnOlderGeneration(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	s.receive(1, s.orders([]protocol.Offer{offer(30, 40, 9, true)}, arrival(1, 10, 20)))
	s.want(s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5)), offer(30, 40, 9, false)})),
		"install 10-20@5 under 1", "serve 30-40@9, await 10-20", "send 10-20@5 30-40@9")
}

// A ticket is valid for one lease: the state that arrived under it cannot be installed twice.
func TestTicketIsValidForOneLease(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	s.want(s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 15, 5)), withState(1, lease(15, 20, 6))})),
		"install 10-15@5 under 1", "state missing", "serve nothing, await 10-15", "send 10-15@5")
}

// A lease is not served while its state is being installed, even if the leader's orders omit the move, or a
// part of the lease is recalled.
func TestHiddenWhileInstalling(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}, arrival(1, 10, 20)))
	s.want(s.receive(2, s.orders(renewals(lease(10, 20, 5)))), "serve nothing, await 10-20")
	s.want(s.receive(2, s.orders(renewals(lease(10, 13, 5), lease(15, 20, 5)))), "serve nothing, await 10-13, await 15-20", "revoked 13-15@5: released", "send 10-13@5 15-20@5")
	s.want(s.receive(2, s.orders(append(renewals(lease(10, 13, 5), lease(15, 20, 5)), offer(20, 30, 6, true)))),
		"serve 20-30@6, await 10-13, await 15-20", "granted 20-30@6", "send 10-13@5 15-20@5 20-30@6")
	s.want(s.step(3, owner.Installed{Ticket: ticket(1)}), "serve 10-13@5 15-20@5 20-30@6", "granted 10-13@5 15-20@5")
}

// When a lease ends completely during the installation, its state is discarded. The application is notified of
// the cause, because it may have installed the state. Its result is then ignored.
func TestInstallingLeaseEnds(t *testing.T) {
	for cause, end := range map[leasehold.Cause]func(*server) []owner.Action{
		leasehold.CauseReleased: func(s *server) []owner.Action { return s.receive(2, s.orders(nil)) },
		leasehold.CauseExpired:  func(s *server) []owner.Action { return s.step(2, owner.Slept{}) },
		leasehold.CauseLeft:     func(s *server) []owner.Action { return s.step(2, owner.Leave{}) },
	} {
		t.Run(cause.String(), func(t *testing.T) {
			s := importedTarget(t, span(10, 20))
			s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5)), offer(30, 40, 6, true)}))
			actions := end(s)
			if !does(actions, "discard 1") || !does(actions, "revoked 10-20@5 30-40@6: "+cause.String()) {
				t.Errorf("actions %v, want the state discarded and the leases revoked", actions)
			}
			s.want(s.step(3, owner.Installed{Ticket: ticket(1)}))
			s.wantLeases()
			s.wantClaims()
		})
	}
}

// Rule 19: a lease without a ticket starts without state. Rule 21: imports of its keys are discarded, because they
// may be stale. Imports of other keys are kept, and so are arrivals that are not confirmed yet.
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
			orders := []any{arrival(1, 10, 20), arrival(2, 20, 30), arrival(3, 40, 50), arrival(4, 12, 18)}
			s.receive(1, s.orders(nil, orders...))
			for _, n := range []byte{1, 2, 3} {
				s.step(1, owner.Imported{Ticket: ticket(n)})
			}
			s.want(s.receive(1, s.orders([]protocol.Offer{c.offer}, arrival(3, 40, 50), arrival(4, 12, 18))), c.want...)
			for _, in := range s.request.Imports {
				if in.Range.Overlaps(c.offer.Range) {
					t.Errorf("the request still reports %+v", in)
				}
			}
			if actions := s.step(1, owner.Imported{Ticket: ticket(4)}); !does(actions, "confirm 4") {
				t.Errorf("actions %v after the arrival is complete, want it confirmed", actions)
			}
		})
	}
}

// A renewal is not a fresh offer: imports of a held range are kept, as in a move of an owner to
// itself.
func TestRenewalSupersedesNothing(t *testing.T) {
	s := newMover(t, lease(10, 20, 1))
	s.receive(1, s.orders(renewals(lease(10, 20, 1)), arrival(1, 10, 20)))
	s.step(1, owner.Imported{Ticket: ticket(1)})
	s.want(s.receive(1, s.orders(renewals(lease(10, 15, 1)), arrival(1, 10, 20))),
		"serve 10-15@1, await 10-20", "revoked 15-20@1: released", "send 10-15@1")
	s.wantReports("has 1")
}

// Rule 20: a confirmed import is kept while the leader orders the move, and then for twice the lease,
// stretched by the drift: a new leader may learn of the move from the source.
func TestConfirmedStateIsKept(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	now := mono.Instant(1)
	var end mono.Instant
	for now < mono.Instant(time.Minute) {
		s.receive(now, s.orders(nil, arrival(1, 10, 20)))
		end = now.Add(24 * time.Second)
		now = s.nextRequest()
		s.wantReports("has 1")
	}
	s.receive(now, s.orders(nil)) // the move is cancelled
	for now = s.nextRequest(); now < end; now = s.nextRequest() {
		s.wantReports("has 1")
		s.receive(now, s.orders(nil))
		if now < end && s.wake > end {
			t.Errorf("at %v the next wake is at %v, want at most %v", now, s.wake, end)
			break
		}
		if s.wake == end {
			s.want(s.did(s.machine.Advance(end - 1)))
			s.want(s.did(s.machine.Advance(end)), "discard 1", "serve nothing")
		}
	}
	s.wantReports()
}

// An import that a leader orders again is kept while it does so.
func TestConfirmedStateIsOrderedAgain(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	s.receive(1, s.orders(nil))
	now := mono.Instant(1)
	for now < mono.Instant(time.Minute) {
		now = s.nextRequest()
		s.wantReports("has 1")
		s.receive(now, s.orders(nil, arrival(1, 10, 20)))
	}
}

// Each leader has the full time to learn of the move, counted from its first reply.
func TestConfirmedStateIsKeptForEachLeader(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	now := s.nextRequest()
	for term := leasehold.Term(2); term < 6; term++ {
		for began := now; now < began.Add(20*time.Second); now = s.nextRequest() {
			r := s.orders(nil)
			r.Term = term
			s.receive(now, r)
			s.wantReports("has 1")
		}
	}
}

// A leader that gives no orders yet may need longer than KeepSuspended and the usual time together.
func TestConfirmedStateIsKeptWhileALeaderCollects(t *testing.T) {
	s := newMoverKeeping(t, time.Second)
	s.receive(1, s.orders(nil, arrival(1, 10, 20)))
	s.step(1, owner.Imported{Ticket: ticket(1)})
	for now := s.nextRequest(); now < mono.Instant(time.Minute); now = s.nextRequest() {
		r := s.orders(nil)
		r.Term, r.Collecting = 2, true
		s.receive(now, r)
		s.wantReports("has 1")
	}
}

// After the lease duration is reduced, a leader may still wait for longer leases. The target waits as long.
func TestConfirmedStateOutlastsLongerLeases(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	now := s.nextRequest()
	for end := now.Add(24 * time.Second); now < end; now = s.nextRequest() {
		s.wantReports("has 1")
		r := s.orders(nil)
		r.Term, r.Timing = 2, protocol.Timing{Lease: 2 * time.Second, Renew: 500 * time.Millisecond, Drift: r.Timing.Drift}
		s.receive(now, r)
	}
	s.wantReports()
}

// A process that has slept discards its imports: it may be a copy, with a state older than what its session has
// reported since.
func TestSleepDiscardsConfirmedState(t *testing.T) {
	s := importedTarget(t, span(10, 20), span(30, 40))
	s.receive(1, s.orders([]protocol.Offer{withState(2, lease(30, 40, 7))}, arrival(1, 10, 20), arrival(3, 50, 60)))
	s.want(s.step(2, owner.Slept{}), "slept", "discard 1", "discard 2", "serve nothing", "revoked 30-40@7: expired", "send nothing")
	s.wantReports()
}

// An arrival that is not confirmed is discarded as soon as the move is cancelled. State under an unknown ticket is
// not confirmed.
func TestUnconfirmedStateIsDiscarded(t *testing.T) {
	s := newMover(t)
	s.receive(1, s.orders(nil, arrival(1, 10, 20)))
	s.want(s.receive(1, s.orders(nil)), "discard 1")
	s.want(s.step(1, owner.Imported{Ticket: ticket(1)}), "discard 1")
	s.want(s.step(1, owner.Imported{Ticket: ticket(9)}), "discard 9")
}

// An owner without a Mover, or that is leaving, accepts no arrivals.
func TestNothingIsExpected(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply())
	s.want(s.receive(1, s.orders(nil, arrival(1, 10, 20))), "joined")
	s = newMover(t)
	s.step(1, owner.Leave{})
	s.want(s.receive(1, s.orders(nil, arrival(1, 10, 20))))
}

// The number of imports in a request is limited, however many arrivals are ordered.
func TestArrivalsAreBounded(t *testing.T) {
	s := newMover(t)
	for round := range byte(3) {
		var orders []any
		for i := range leasehold.Key(protocol.MaxMoves) {
			a := arrival(round+1, i, i+1)
			a.Ticket[1] = byte(i)
			orders = append(orders, a)
		}
		for _, act := range s.receive(1, s.orders(nil, orders...)) {
			if e, ok := act.(owner.Expect); ok {
				s.step(1, owner.Imported{Ticket: e.Ticket})
			}
		}
	}
	s.nextRequest()
	if n := len(s.request.Imports); n != protocol.MaxMoves {
		t.Errorf("the request has %d imports, want %d", n, protocol.MaxMoves)
	}
	if err := s.request.Validate(protocol.DefaultLimits); err != nil {
		t.Error(err)
	}
}

// A move of a range whose state is still being installed starts after the installation.
func TestDepartureWaitsForItsState(t *testing.T) {
	s := importedTarget(t, span(10, 20))
	s.receive(1, s.orders([]protocol.Offer{withState(1, lease(10, 20, 5))}))
	s.want(s.receive(2, s.orders(renewals(lease(10, 20, 5)), departure(2, 10, 20))), "serve nothing, await 10-20")
	s.want(s.step(3, owner.Installed{Ticket: ticket(1)}), "serve 10-20@5", "granted 10-20@5", "start 2")
}
