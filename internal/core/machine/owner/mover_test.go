package owner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// These tests check an owner with a Mover against the numbered rules of
// proto/leasehold/v1/lease.proto: HoldRequest 5 to 8, Grant 15 to 21. The test
// takes the roles of the leader, the other owner and the application.

var other = &table.Holder{Owner: "p", Session: leasehold.Session{2}, Addr: "b", Weight: 1}

// newMover returns an owner with a Mover that holds these leases. The leader has renewed
// them.
func newMover(t *testing.T, leases ...leasehold.Lease) *server {
	t.Helper()
	return newMoverKeeping(t, time.Hour, leases...)
}

func newMoverKeeping(t *testing.T, keepSuspended time.Duration, leases ...leasehold.Lease) *server {
	t.Helper()
	cfg := serverConfig()
	cfg.KeepSuspended = keepSuspended
	cfg.Mover = "a"
	m, err := owner.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, machine: m}
	s.did(m.Advance(0))
	s.receive(0, s.reply())
	if len(leases) > 0 {
		s.receive(0, s.reply(grants(leases...)...))
		s.receive(0, s.reply(renewals(leases...)...))
	}
	return s
}

func ticket(n byte) protocol.Ticket { return protocol.Ticket{n} }

func departure(n byte, start, limit leasehold.Key) protocol.Departure {
	return protocol.Departure{Ticket: ticket(n), Range: leasehold.Range{Start: start, Limit: limit}, To: other, Mover: "b"}
}

func arrival(n byte, start, limit leasehold.Key) protocol.Arrival {
	return protocol.Arrival{Ticket: ticket(n), Range: leasehold.Range{Start: start, Limit: limit}, From: other, Since: protocol.Since{LSN: 4, Newest: 3}}
}

// withState returns the offer of a lease with a ticket.
func withState(n byte, l leasehold.Lease) protocol.Offer {
	return protocol.Offer{Lease: l, Fresh: true, Ticket: ticket(n)}
}

// orders returns the leader's reply to the newest request, with orders about moves.
func (s *server) orders(offers []protocol.Offer, what ...any) *protocol.LeaseReply {
	r := s.reply(offers...)
	for _, w := range what {
		switch w := w.(type) {
		case protocol.Departure:
			r.Departures = append(r.Departures, w)
		case protocol.Arrival:
			r.Arrivals = append(r.Arrivals, w)
		default:
			s.t.Fatalf("%T is not an order", w)
		}
	}
	return r
}

// nextRequest advances the time to the next request, and returns that time.
func (s *server) nextRequest() mono.Instant {
	s.t.Helper()
	before := s.request.Seq
	for range 10 {
		now := s.wake
		s.did(s.machine.Advance(now))
		if s.request.Seq > before {
			return now
		}
	}
	s.t.Fatal("no request after 10 wakes")
	return 0
}

// want fails unless these are the actions, in this order.
func (s *server) want(actions []owner.Action, want ...string) {
	s.t.Helper()
	var got []string
	for _, a := range actions {
		got = append(got, describe(a))
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("actions (-want +got):\n%s", diff)
	}
}

// wantReports fails unless the newest request reports these moves and imports.
func (s *server) wantReports(want ...string) {
	s.t.Helper()
	var got []string
	for _, m := range s.request.Moves {
		got = append(got, fmt.Sprintf("%d %s", m.Ticket[0], stateNames[m.State]))
	}
	for _, in := range s.request.Imports {
		got = append(got, fmt.Sprintf("has %d", in.Ticket[0]))
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("reports in request %d (-want +got):\n%s", s.request.Seq, diff)
	}
	if err := s.request.Validate(protocol.DefaultLimits); err != nil {
		s.t.Fatal(err)
	}
}

// wantClaims fails unless the newest request claims these leases.
func (s *server) wantClaims(want ...leasehold.Lease) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.request.Leases, cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("leases in request %d (-want +got):\n%s", s.request.Seq, diff)
	}
}

var stateNames = map[protocol.MoveState]string{
	protocol.MoveCopying: "copying", protocol.MoveStopped: "stopped", protocol.MoveDone: "done", protocol.MoveFailed: "failed",
}

// describe formats an action for want.
func describe(a owner.Action) string {
	switch a := a.(type) {
	case owner.Send:
		return "send " + leases(a.Request.Leases)
	case owner.Publish:
		out := "serve " + leases(a.View.Leases)
		if idle := protocol.Missing(a.View.Kept, a.View.Leases); len(idle) > 0 {
			out += ", keep " + leases(idle)
		}
		for _, r := range a.View.Coming {
			out += fmt.Sprintf(", await %d-%d", r.Start, r.Limit)
		}
		return out
	case owner.GrantedLeases:
		return "granted " + leases(a.Leases)
	case owner.RevokedLeases:
		return fmt.Sprintf("revoked %s: %v", leases(a.Leases), a.Cause)
	case owner.StartMove:
		return fmt.Sprintf("start %d", a.Ticket[0])
	case owner.Stop:
		return fmt.Sprintf("stop %d", a.Ticket[0])
	case owner.EndMove:
		return fmt.Sprintf("end %d", a.Ticket[0])
	case owner.Expect:
		return fmt.Sprintf("expect %d", a.Ticket[0])
	case owner.Confirm:
		return fmt.Sprintf("confirm %d", a.Ticket[0])
	case owner.Install:
		return fmt.Sprintf("install %s under %d", leases([]leasehold.Lease{a.Lease}), a.Ticket[0])
	case owner.Discard:
		return fmt.Sprintf("discard %d", a.Ticket[0])
	case owner.Note:
		return a.What.String()
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a), "owner."))
}

func leases(ls []leasehold.Lease) string {
	if len(ls) == 0 {
		return "nothing"
	}
	var parts []string
	for _, l := range ls {
		parts = append(parts, fmt.Sprintf("%d-%d@%d", l.Range.Start, l.Range.Limit, l.Generation))
	}
	return strings.Join(parts, " ")
}
