package owner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// suspendedServer returns an owner with one suspended lease, and the deadline of the lease.
func suspendedServer(t *testing.T) (*server, mono.Instant) {
	t.Helper()
	s := newMover(t, lease(0, 20, 1))
	until := s.machine.View().Until
	s.did(s.machine.Advance(until - 1))
	if _, ok := s.machine.View().Check(until-1, 5); !ok {
		t.Fatal("the lease is not held just before its deadline")
	}
	s.want(onlySuspension(s.did(s.machine.Advance(until))), "suspended", "suspendedleases")
	return s, until
}

// onlySuspension omits requests and notes about a silent leader.
func onlySuspension(actions []owner.Action) []owner.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a owner.Action) bool {
		_, send := a.(owner.Send)
		n, note := a.(owner.Note)
		return send || note && n.What == owner.NoteLeaderSilent
	})
}

// ask advances the time to the next request, so that a reply can echo it.
func (s *server) ask(now mono.Instant) mono.Instant {
	for s.wake > now {
		now = s.wake
	}
	s.did(s.machine.Advance(now))
	return now
}

// DESIGN 5: checks fail after the deadline, and nothing else changes. Requests claim the lease, marked as
// suspended, and the application keeps its state.
func TestSuspension(t *testing.T) {
	s, until := suspendedServer(t)
	v := s.machine.View()
	if _, ok := v.Check(until, 5); ok || v.Held(until, 5, 1) {
		t.Error("a suspended lease is served")
	}
	if len(v.Kept) != 1 {
		t.Errorf("the state of %v is kept, want that of the lease", v.Kept)
	}
	now := s.ask(until)
	if r := s.request; !r.Suspended || len(r.Leases) != 1 || r.Leases[0].Generation != 1 {
		t.Errorf("request with leases %v, suspended: %t", r.Leases, r.Suspended)
	}
	// A renewal resumes it under the same generation, and Held of an earlier check succeeds.
	s.want(s.receive(now, s.reply(offer(0, 20, 1, false))), "serve 0-20@1", "resumed", "resumedleases")
	if v := s.machine.View(); !v.Held(now, 5, 1) {
		t.Error("the resumed lease is not held")
	}
	if s.machine.Suspended() {
		t.Error("the leases are still suspended")
	}
}

// Leases that the reply omits have ended. Those that it renews are resumed.
func TestSuspensionEndsInPart(t *testing.T) {
	s, until := suspendedServer(t)
	now := s.ask(until)
	s.want(s.receive(now, s.reply(offer(0, 7, 1, false))), "serve 0-7@1", "not resumed", "revoked 7-20@1: expired", "resumed", "resumedleases", "send 0-7@1")
}

// A leader in its census cannot exclude that another owner has held the range.
func TestSuspensionEndsInACensus(t *testing.T) {
	s, until := suspendedServer(t)
	now := s.ask(until)
	r := s.reply(offer(0, 20, 1, false))
	r.Collecting = true
	s.want(s.receive(now, r), "not resumed", "serve nothing", "revoked 0-20@1: expired", "send nothing")
}

// A process that has slept, or leaves, does not keep suspended leases.
func TestSuspensionEndsBySleep(t *testing.T) {
	s, until := suspendedServer(t)
	s.want(s.step(until+1, owner.Slept{}), "slept", "serve nothing", "revoked 0-20@1: expired", "send nothing")
	s, until = suspendedServer(t)
	s.want(s.step(until+1, owner.Leave{}), "serve nothing", "revoked 0-20@1: left", "send nothing")
}

// KeepSuspended limits how long state is kept without a leader.
func TestKeepSuspended(t *testing.T) {
	s, until := suspendedServer(t)
	end := until.Add(time.Hour)
	for now := until; now < end; now = s.wake {
		s.did(s.machine.Advance(now))
		if !s.machine.Suspended() {
			t.Fatalf("at %v the leases are not suspended", now)
		}
		if s.wake <= now || s.wake > end {
			t.Fatalf("at %v the next wake is at %v, want at most %v", now, s.wake, end)
		}
	}
	s.want(onlySuspension(s.did(s.machine.Advance(end))), "kept too long", "serve nothing", "revoked 0-20@1: expired")
}

// TestKeptWithoutLimit: by default suspended leases are kept until a leader replies, after an outage of any length.
func TestKeptWithoutLimit(t *testing.T) {
	s := newMoverKeeping(t, 0, lease(0, 20, 1))
	now := s.machine.View().Until
	for end := now.Add(24 * time.Hour); now < end; now = s.wake {
		s.did(s.machine.Advance(now))
		if !s.machine.Suspended() || s.wake <= now {
			t.Fatalf("at %v: suspended %t, next wake %v", now, s.machine.Suspended(), s.wake)
		}
	}
	now = s.ask(now)
	if r := s.request; !r.Suspended || len(r.Leases) != 1 {
		t.Errorf("after a day it claims %v, suspended: %t", r.Leases, r.Suspended)
	}
	s.want(s.receive(now, s.reply(offer(0, 20, 1, false))), "serve 0-20@1", "resumed", "resumedleases")
}

// An owner that closes during an outage does not wait for a leader.
func TestPartingWhileSuspended(t *testing.T) {
	s, until := suspendedServer(t)
	parted := func(actions []owner.Action) bool {
		return slices.ContainsFunc(actions, func(a owner.Action) bool { _, is := a.(owner.Parted); return is })
	}
	s.step(until, owner.Part{})
	if !parted(s.did(s.machine.Advance(until + 1))) {
		t.Error("it waits for a leader to order moves")
	}
}

// Confirmed state may be the only copy: it is kept during an outage.
func TestArrivalIsKeptInAnOutage(t *testing.T) {
	s := newMover(t)
	s.receive(1, s.orders(nil, arrival(1, 5, 10)))
	s.step(1, owner.Imported{Ticket: ticket(1)})
	for now := s.wake; now < mono.Instant(30*time.Minute); now = s.wake {
		for _, a := range s.did(s.machine.Advance(now)) {
			if d, is := a.(owner.Discard); is {
				t.Fatalf("%v is discarded at %v", d.Ticket, now)
			}
		}
	}
	if len(s.request.Imports) != 1 {
		t.Errorf("request with imports %v, want the confirmed one", s.request.Imports)
	}
}

// An owner whose only lease was suspended and moved has nothing to drop. It must not answer every reply of a
// leader in its census with a request at once.
func TestSuspensionEndsWithTheLease(t *testing.T) {
	s := newMover(t, lease(0, 20, 1))
	now := s.nextRequest()
	s.receive(now, s.orders([]protocol.Offer{offer(0, 20, 1, false)}, departure(1, 0, 20)))
	s.step(now, owner.Copied{Ticket: ticket(1)})
	until := s.machine.View().Until
	s.did(s.machine.Advance(until))
	s.step(until, owner.Confirmed{Ticket: ticket(1)})
	now = s.ask(until)
	seq := s.request.Seq
	for range 1000 {
		r := s.reply()
		r.Collecting = true
		now = now.Add(time.Millisecond)
		s.receive(now, r)
	}
	if n := s.request.Seq - seq; n > 10 {
		t.Errorf("%d requests in a second, want at most 10", n)
	}
}
