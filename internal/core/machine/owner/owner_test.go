package owner_test

import (
	"errors"
	"math/rand/v2"
	"slices"
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

func serverConfig() owner.Config {
	return owner.Config{
		Namespace: "n", Rand: rand.New(rand.NewPCG(1, 2)),
		Holder: &table.Holder{Owner: "o", Session: leasehold.Session{1}, Addr: "a", Weight: 1},
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*owner.Config)
		want  string
	}{
		{"no namespace", func(c *owner.Config) { c.Namespace = "" }, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no holder", func(c *owner.Config) { c.Holder = nil }, `owner "n": Holder and Rand must be set`},
		{"no randomness", func(c *owner.Config) { c.Rand = nil }, `owner "n": Holder and Rand must be set`},
		{"invalid holder", func(c *owner.Config) { c.Holder.Weight = 0 }, `holder "o": weight is 0, want more than 0 and at most 1000`},
		{"a death hash and promises", func(c *owner.Config) { c.Promises, c.Holder.DeathHash = true, table.DeathHash{1} }, `owner "o": promises outlive this process, so its death must not end its leases: register no supervisor`},
		{"negative retry", func(c *owner.Config) { c.Retry = -1 }, `owner "o": retry -1ns, backoff 200ms and keep suspended 0s must not be negative`},
		{"negative backoff", func(c *owner.Config) { c.Backoff = -1 }, `owner "o": retry 500ms, backoff -1ns and keep suspended 0s must not be negative`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := serverConfig()
			c.spoil(&cfg)
			_, err := owner.New(0, cfg)
			if err == nil {
				t.Fatal("the configuration is accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

// A server is an owner; the test takes the role of its leader.
type server struct {
	t       *testing.T
	machine *owner.Machine
	wake    mono.Instant
	request *protocol.LeaseRequest // the newest one
	lastSeq protocol.Seq
}

// newServer returns an owner that has sent its first request, at 0.
func newServer(t *testing.T) *server {
	t.Helper()
	m, err := owner.New(0, serverConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, machine: m}
	s.did(m.Advance(0))
	return s
}

func (s *server) did(actions []owner.Action, wake mono.Instant) []owner.Action {
	s.wake = wake
	var kept []owner.Action
	for _, a := range actions {
		if send, ok := a.(owner.Send); ok {
			s.request = send.Request
		}
		kept = append(kept, a)
	}
	return kept
}

func (s *server) step(now mono.Instant, e owner.Event) []owner.Action {
	return s.did(s.machine.Step(now, e))
}

// reply returns a reply to the newest request, by leader m in term 1.
func (s *server) reply(offers ...protocol.Offer) *protocol.LeaseReply {
	s.lastSeq++
	return &protocol.LeaseReply{
		Namespace: "n", Session: leasehold.Session{1}, Leader: "m", Term: 1, Seq: s.lastSeq, Echo: s.request.Seq,
		Timing: protocol.DefaultTiming(), Offers: offers,
	}
}

func (s *server) receive(now mono.Instant, r *protocol.LeaseReply) []owner.Action {
	return s.step(now, owner.Reply{LeaseReply: r})
}

func (s *server) wantLeases(want ...leasehold.Lease) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.machine.View().Leases, cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("leases (-want +got):\n%s", diff)
	}
}

func offer(start, limit leasehold.Key, g leasehold.Generation, fresh bool) protocol.Offer {
	return protocol.Offer{Lease: leasehold.Lease{Range: leasehold.Range{Start: start, Limit: limit}, Generation: g}, Fresh: fresh}
}

// An owner renews on a beat, which is slightly earlier than without beats, and never later. Retries are not
// aligned to beats.
func TestRenewsOnABeat(t *testing.T) {
	const length = 40 * time.Millisecond // of a beat for renewals every 2.5 s
	cfg := serverConfig()
	cfg.Beats = mono.BeatsAt(mono.Instant(7 * time.Millisecond))
	m, err := owner.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, machine: m}
	s.did(m.Advance(0))
	renew, sent := protocol.DefaultTiming().Renew, mono.Instant(0)
	onBeat := func() bool { return time.Duration(s.wake)%length == 7*time.Millisecond }
	for range 3 { // it acknowledges the first reply, and each grant, at once
		s.receive(sent.Add(time.Millisecond), s.reply(offer(0, 10, 1, true)))
		sent = sent.Add(time.Millisecond)
		s.did(m.Advance(sent))
	}
	for range 20 {
		s.receive(sent.Add(time.Millisecond), s.reply(offer(0, 10, 1, false)))
		if pause := s.wake.Sub(sent); pause > renew || pause < renew*7/8-length || !onBeat() {
			t.Errorf("request at %v, the next one at %v: want it on a beat, up to %v later", sent, s.wake, renew)
		}
		sent = s.wake
		s.did(m.Advance(sent))
	}
	beats := 0
	for range 10 {
		if s.did(m.Advance(s.wake)); onBeat() {
			beats++
		}
	}
	if beats > 5 {
		t.Errorf("%d of 10 retries are on a beat", beats)
	}
}

// A session whose name is taken emits FindPredecessor once, and reports in its requests that the predecessor's
// process has ended.
func TestPredecessor(t *testing.T) {
	s := newServer(t)
	incumbent := &table.Holder{Owner: "o", Session: leasehold.Session{9}, Addr: "a", Weight: 1}
	asked := 0
	for range 3 {
		r := s.reply()
		r.Incumbent = incumbent
		for _, a := range s.receive(0, r) {
			if find, ok := a.(owner.FindPredecessor); ok && find.Incumbent == incumbent {
				asked++
			}
		}
		s.did(s.machine.Advance(s.wake))
	}
	if asked != 1 {
		t.Errorf("FindPredecessor %d times, want once", asked)
	}
	for _, wrong := range []leasehold.Session{{}, {1}, {8}} {
		before := s.request.Seq
		s.step(s.wake-1, owner.PredecessorGone{Session: wrong})
		if !s.request.Gone.IsZero() || s.request.Seq != before {
			t.Errorf("after PredecessorGone of %v: a request with Gone %v", wrong, s.request.Gone)
		}
	}
	s.step(s.wake-1, owner.PredecessorGone{Session: incumbent.Session})
	if s.request.Gone != incumbent.Session {
		t.Errorf("Gone of the request is %v, want %v", s.request.Gone, incumbent.Session)
	}
}

// A reply with Goodbye to an owner that is not leaving is handled like other replies.
func TestUnexpectedGoodbye(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply(offer(0, 10, 1, true)))
	r := s.reply()
	r.Goodbye = true
	s.receive(1, r)
	s.wantLeases()
	if s.wake == mono.Never || s.machine.Term() != 1 {
		t.Errorf("next wake at %v in term %d, want one in term 1", s.wake, s.machine.Term())
	}
}

func TestLeave(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply(offer(0, 10, 1, true)))
	actions := s.step(1, owner.Leave{})
	if _, first := actions[0].(owner.Publish); !first || !s.request.Leaving || len(s.request.Leases) != 0 {
		t.Errorf("actions %v, request %+v: want Publish first, and Leaving without leases", actions, s.request)
	}
	s.step(2, owner.Leave{}) // the second one has no effect
	s.receive(3, s.reply(offer(0, 10, 2, true)))
	s.wantLeases() // a leaving owner accepts no grant
	r := s.reply()
	r.Goodbye = true
	actions = s.receive(4, r)
	if diff := cmp.Diff([]owner.Action{owner.Left{}}, actions); diff != "" || s.wake != mono.Never {
		t.Errorf("next wake at %v (-want +got):\n%s", s.wake, diff)
	}
	if actions := s.receive(5, s.reply(offer(0, 10, 3, true))); len(actions) != 0 {
		t.Errorf("actions %v after the session has ended", actions)
	}
}

// Without an acknowledgement the session ends when the leader would have expired its leases.
func TestLeaveUnacknowledged(t *testing.T) {
	timing := protocol.DefaultTiming()
	for name, wait := range map[string]func(*server) time.Duration{
		"known leader": func(s *server) time.Duration {
			r := s.reply(offer(0, 10, 1, true))
			r.Timing.Lease *= 2
			r.Timing.Renew *= 2
			s.receive(0, r)
			return timing.Drift.Stretch(2 * timing.Lease)
		},
		"no leader": func(*server) time.Duration { return timing.Drift.Stretch(timing.Lease) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			last := mono.Instant(1).Add(wait(s))
			s.step(1, owner.Leave{})
			now := mono.Instant(1)
			for s.wake < last {
				now = s.wake
				if actions := s.did(s.machine.Advance(now)); slices.ContainsFunc(actions, isLeft) || !s.request.Leaving {
					t.Fatalf("at %v: actions %v, request %+v, want Leaving", now, actions, s.request)
				}
			}
			if actions := s.did(s.machine.Advance(s.wake)); s.wake != mono.Never || !slices.Contains(actions, owner.Action(owner.Left{Unacknowledged: true})) {
				t.Errorf("at the timeout: actions %v, next wake at %v, want Left and no wake", actions, s.wake)
			}
			if now == 1 {
				t.Error("the request with Leaving is not retried")
			}
			if actions := s.step(last+1, owner.Leave{}); len(actions) != 0 {
				t.Errorf("actions %v after the session has ended", actions)
			}
		})
	}
}

func isLeft(a owner.Action) bool {
	_, is := a.(owner.Left)
	return is
}

func TestExchange(t *testing.T) {
	lease := func(start, limit leasehold.Key, g leasehold.Generation) leasehold.Lease {
		return offer(start, limit, g, false).Lease
	}
	for _, c := range []struct {
		name           string
		before, offers []protocol.Offer
		want           []leasehold.Lease
	}{
		{
			"adjacent parts of one lease are merged",
			[]protocol.Offer{offer(0, 5, 1, true), offer(5, 9, 1, true)},
			[]protocol.Offer{offer(0, 9, 1, false)},
			[]leasehold.Lease{lease(0, 9, 1)},
		},
		{
			"parts with a gap stay separate",
			[]protocol.Offer{offer(0, 4, 1, true), offer(5, 9, 1, true)},
			[]protocol.Offer{offer(0, 9, 1, false)},
			[]leasehold.Lease{lease(0, 4, 1), lease(5, 9, 1)},
		},
		{
			"a renewal of a lease that is not held is rejected",
			[]protocol.Offer{offer(0, 5, 1, true)},
			[]protocol.Offer{offer(0, 5, 1, false), offer(5, 9, 2, false)},
			[]leasehold.Lease{lease(0, 5, 1)},
		},
		{
			"a renewal does not extend the range",
			[]protocol.Offer{offer(2, 5, 1, true)},
			[]protocol.Offer{offer(0, 9, 1, false)},
			[]leasehold.Lease{lease(2, 5, 1)},
		},
		{
			"a grant needs a generation newer than all before",
			[]protocol.Offer{offer(0, 5, 3, true)},
			[]protocol.Offer{offer(0, 5, 3, false), offer(5, 7, 2, true), offer(7, 9, 4, true)},
			[]leasehold.Lease{lease(0, 5, 3), lease(7, 9, 4)},
		},
		{
			"grants in one reply need not be in order",
			nil,
			[]protocol.Offer{offer(0, 5, 9, true), offer(5, 7, 2, true)},
			[]leasehold.Lease{lease(0, 5, 9), lease(5, 7, 2)},
		},
		{
			"a repeated grant is kept",
			[]protocol.Offer{offer(0, 5, 1, true)},
			[]protocol.Offer{offer(0, 5, 1, true)},
			[]leasehold.Lease{lease(0, 5, 1)},
		},
		{
			"a lease without an offer ends",
			[]protocol.Offer{offer(0, 5, 1, true), offer(5, 0, 2, true)},
			[]protocol.Offer{offer(8, 0, 2, false)},
			[]leasehold.Lease{lease(8, 0, 2)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			s.receive(0, s.reply(c.before...))
			s.receive(1, s.reply(c.offers...))
			s.wantLeases(c.want...)
			if len(c.want) > 0 && s.machine.View().Until < mono.Instant(10*time.Second) {
				t.Errorf("deadline %v, want at least 10 s", s.machine.View().Until)
			}
		})
	}
}

// A refused owner keeps its leases until their deadline, and retries after the usual renewal
// interval, at all managers.
func TestRefused(t *testing.T) {
	s := newServer(t)
	for _, a := range s.step(mono.Instant(100*time.Millisecond), owner.Refused{Kind: leasehold.ErrNotFound}) {
		if _, ok := a.(owner.Send); ok {
			t.Error("it retries at once")
		}
	}
	if s.wake < mono.Instant(1800*time.Millisecond) || s.wake > mono.Instant(2100*time.Millisecond) {
		t.Errorf("next request at %v, want 2 s after the refusal", s.wake)
	}
	now := s.wake
	s.did(s.machine.Advance(now))
	s.receive(now, s.reply())
	s.receive(now, s.reply(offer(0, 10, 1, true)))
	s.receive(now, s.reply(offer(0, 10, 1, false)))
	held := offer(0, 10, 1, false).Lease
	until := s.machine.View().Until
	for s.wake < until {
		now = s.wake
		s.did(s.machine.Advance(now))
		if now < until {
			s.wantLeases(held)
			s.step(now, owner.Refused{Kind: leasehold.ErrNotFound})
		}
	}
	s.did(s.machine.Advance(until))
	if !s.machine.Suspended() {
		t.Error("the leases are not suspended at their deadline")
	}
}

// A refusal is noted with its kind.
func TestRefusedIsNoted(t *testing.T) {
	s := newServer(t)
	for _, a := range s.step(mono.Instant(100*time.Millisecond), owner.Refused{Kind: leasehold.ErrLimit}) {
		if n, ok := a.(owner.Note); ok && n.What == owner.NoteServerRefuse && n.Kind == leasehold.ErrLimit {
			return
		}
	}
	t.Error("no NoteServerRefuse with ErrLimit")
}

// sent returns the receiver of the request: a manager, "all", or "none" without a request.
func sent(actions []owner.Action) string {
	for _, a := range actions {
		if s, ok := a.(owner.Send); ok {
			if s.To == "" {
				return "all"
			}
			return string(s.To)
		}
	}
	return "none"
}

// After the connection to the leader breaks the owner does not wait for a timeout. Connections to other
// managers have no effect.
func TestDisconnected(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply())
	s.receive(0, s.reply(offer(0, 10, 1, true)))
	s.receive(0, s.reply(offer(0, 10, 1, false)))
	calm := s.wake
	s.step(1, owner.Disconnected{Manager: "other"})
	if s.wake != calm {
		t.Errorf("next wake at %v after a standby disconnects, want %v", s.wake, calm)
	}
	s.step(1, owner.Disconnected{Manager: "m"})
	if s.wake > mono.Instant(time.Second) {
		t.Errorf("next request at %v after the leader disconnects, want within 1 s", s.wake)
	}
	if to := sent(s.did(s.machine.Advance(s.wake))); to != "all" {
		t.Errorf("request to %s after the leader disconnects, want all", to)
	}
	s.wantLeases(offer(0, 10, 1, false).Lease)
}

// A hint to a leader of a higher term is always followed. Other hints are ignored while the leader
// replies.
func TestHintToANewerLeader(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply())
	s.receive(0, s.reply(offer(0, 10, 1, true)))
	s.receive(0, s.reply(offer(0, 10, 1, false)))
	calm := s.wake
	s.step(1, owner.Redirect{NotLeader: protocol.NotLeader{Term: 1, Leader: "n"}})
	if s.wake != calm {
		t.Errorf("next wake at %v after a hint of the current term, want %v", s.wake, calm)
	}
	actions := s.step(1, owner.Redirect{NotLeader: protocol.NotLeader{Term: 2, Leader: "n"}})
	if to := sent(actions); to == "none" {
		actions = s.did(s.machine.Advance(s.wake))
	}
	if to := sent(actions); to != "n" || s.wake > mono.Instant(4*time.Second) {
		t.Errorf("request to %s after a hint to a newer leader, want n", to)
	}
}
