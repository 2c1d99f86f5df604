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
		{"nobody", func(c *owner.Config) { c.Holder = nil }, `owner "n": Holder and Rand must be set`},
		{"no randomness", func(c *owner.Config) { c.Rand = nil }, `owner "n": Holder and Rand must be set`},
		{"a bad holder", func(c *owner.Config) { c.Holder.Weight = 0 }, `holder "o": weight is 0, want more than 0 and at most 1000`},
		{"a retry in the past", func(c *owner.Config) { c.Retry = -1 }, `owner "o": retry -1ns, backoff 200ms and keep suspended 0s must not be negative`},
		{"a backoff into the past", func(c *owner.Config) { c.Backoff = -1 }, `owner "o": retry 500ms, backoff -1ns and keep suspended 0s must not be negative`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := serverConfig()
			c.spoil(&cfg)
			_, err := owner.New(0, cfg)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

// A server is an owner that the test plays the leader for.
type server struct {
	t       *testing.T
	machine *owner.Machine
	wake    mono.Instant
	request *protocol.LeaseRequest // the newest
	said    protocol.Seq
}

// newServer returns an owner that has spoken for the first time, at 0.
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

// reply starts an answer to the newest request, by leader m in term 1.
func (s *server) reply(offers ...protocol.Offer) *protocol.LeaseReply {
	s.said++
	return &protocol.LeaseReply{
		Namespace: "n", Session: leasehold.Session{1}, Leader: "m", Term: 1, Seq: s.said, Echo: s.request.Seq,
		Timing: protocol.DefaultTiming(), Offers: offers,
	}
}

func (s *server) hear(now mono.Instant, r *protocol.LeaseReply) []owner.Action {
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

// An owner renews on a beat, which is a little sooner than it would have been, and never later.
// What it says again because nobody has answered comes when it comes.
func TestRenewsOnABeat(t *testing.T) {
	const length = 40 * time.Millisecond // that of renewals every 2.5 s
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
	for range 3 { // the first answer is proof that it hears, and makes it speak at once
		s.hear(sent.Add(time.Millisecond), s.reply(offer(0, 10, 1, true)))
		sent = sent.Add(time.Millisecond)
		s.did(m.Advance(sent))
	}
	for range 20 {
		s.hear(sent.Add(time.Millisecond), s.reply(offer(0, 10, 1, false)))
		if pause := s.wake.Sub(sent); pause > renew || pause < renew*7/8-length || !onBeat() {
			t.Errorf("sent at %v, it speaks again at %v", sent, s.wake)
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
		t.Errorf("of 10 times that it was not answered, it speaks again on a beat %d times", beats)
	}
}

// A later session of a name asks about the one before it, once, and says that
// it is gone if that is so.
func TestPredecessor(t *testing.T) {
	s := newServer(t)
	incumbent := &table.Holder{Owner: "o", Session: leasehold.Session{9}, Addr: "a", Weight: 1}
	asked := 0
	for range 3 {
		r := s.reply()
		r.Incumbent = incumbent
		for _, a := range s.hear(0, r) {
			if find, ok := a.(owner.FindPredecessor); ok && find.Incumbent == incumbent {
				asked++
			}
		}
		s.did(s.machine.Advance(s.wake))
	}
	if asked != 1 {
		t.Errorf("it asked %d times, want once", asked)
	}
	for _, wrong := range []leasehold.Session{{}, {1}, {8}} {
		before := s.request.Seq
		s.step(s.wake-1, owner.PredecessorGone{Session: wrong})
		if !s.request.Gone.IsZero() || s.request.Seq != before {
			t.Errorf("%v: it says that %v is gone", wrong, s.request.Gone)
		}
	}
	s.step(s.wake-1, owner.PredecessorGone{Session: incumbent.Session})
	if s.request.Gone != incumbent.Session {
		t.Errorf("it says that %v is gone", s.request.Gone)
	}
}

// A goodbye that nobody asked for is a reply like any other.
func TestUnaskedGoodbye(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply(offer(0, 10, 1, true)))
	r := s.reply()
	r.Goodbye = true
	s.hear(1, r)
	s.wantLeases()
	if s.wake == mono.Never || s.machine.Term() != 1 {
		t.Errorf("it wants to be woken at %v, in term %d", s.wake, s.machine.Term())
	}
}

func TestLeave(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply(offer(0, 10, 1, true)))
	actions := s.step(1, owner.Leave{})
	if _, first := actions[0].(owner.Publish); !first || !s.request.Leaving || len(s.request.Leases) != 0 {
		t.Errorf("it does %v", actions)
	}
	s.step(2, owner.Leave{}) // it is said once
	s.hear(3, s.reply(offer(0, 10, 2, true)))
	s.wantLeases() // whatever it is offered
	r := s.reply()
	r.Goodbye = true
	actions = s.hear(4, r)
	if diff := cmp.Diff([]owner.Action{owner.Left{}}, actions); diff != "" || s.wake != mono.Never {
		t.Errorf("it wants to be woken at %v (-want +got):\n%s", s.wake, diff)
	}
	if actions := s.hear(5, s.reply(offer(0, 10, 3, true))); len(actions) != 0 {
		t.Errorf("having left, it does %v", actions)
	}
}

// If nobody says goodbye, it goes when a leader would have taken its leases from it.
func TestLeaveUnheard(t *testing.T) {
	timing := protocol.DefaultTiming()
	for name, wait := range map[string]func(*server) time.Duration{
		"a leader that it knows": func(s *server) time.Duration {
			r := s.reply(offer(0, 10, 1, true))
			r.Timing.Lease *= 2
			r.Timing.Renew *= 2
			s.hear(0, r)
			return timing.Drift.Stretch(2 * timing.Lease)
		},
		"no leader at all": func(*server) time.Duration { return timing.Drift.Stretch(timing.Lease) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			last := mono.Instant(1).Add(wait(s))
			s.step(1, owner.Leave{})
			now := mono.Instant(1)
			for s.wake < last {
				now = s.wake
				if actions := s.did(s.machine.Advance(now)); slices.ContainsFunc(actions, isLeft) || !s.request.Leaving {
					t.Fatalf("at %v it does %v", now, actions)
				}
			}
			if actions := s.did(s.machine.Advance(s.wake)); s.wake != mono.Never || !slices.Contains(actions, owner.Action(owner.Left{Unheard: true})) {
				t.Errorf("in the end it does %v, and wants to be woken at %v", actions, s.wake)
			}
			if now == 1 {
				t.Error("it has said it once only")
			}
			if actions := s.step(last+1, owner.Leave{}); len(actions) != 0 {
				t.Errorf("having left, it does %v", actions)
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
			"parts of one lease that touch become one",
			[]protocol.Offer{offer(0, 5, 1, true), offer(5, 9, 1, true)},
			[]protocol.Offer{offer(0, 9, 1, false)},
			[]leasehold.Lease{lease(0, 9, 1)},
		},
		{
			"parts that do not touch stay parts",
			[]protocol.Offer{offer(0, 4, 1, true), offer(5, 9, 1, true)},
			[]protocol.Offer{offer(0, 9, 1, false)},
			[]leasehold.Lease{lease(0, 4, 1), lease(5, 9, 1)},
		},
		{
			"a renewal gives nothing that is not held",
			[]protocol.Offer{offer(0, 5, 1, true)},
			[]protocol.Offer{offer(0, 5, 1, false), offer(5, 9, 2, false)},
			[]leasehold.Lease{lease(0, 5, 1)},
		},
		{
			"a renewal gives no more than is held",
			[]protocol.Offer{offer(2, 5, 1, true)},
			[]protocol.Offer{offer(0, 9, 1, false)},
			[]leasehold.Lease{lease(2, 5, 1)},
		},
		{
			"a grant gives what is newer than all",
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
			"a grant that is held goes on",
			[]protocol.Offer{offer(0, 5, 1, true)},
			[]protocol.Offer{offer(0, 5, 1, true)},
			[]leasehold.Lease{lease(0, 5, 1)},
		},
		{
			"what is not offered is gone",
			[]protocol.Offer{offer(0, 5, 1, true), offer(5, 0, 2, true)},
			[]protocol.Offer{offer(8, 0, 2, false)},
			[]leasehold.Lease{lease(8, 0, 2)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			s.hear(0, s.reply(c.before...))
			s.hear(1, s.reply(c.offers...))
			s.wantLeases(c.want...)
			if len(c.want) > 0 && s.machine.View().Until < mono.Instant(10*time.Second) {
				t.Errorf("until %v", s.machine.View().Until)
			}
		})
	}
}

// Whoever is refused keeps what it holds, for as long as it may, and speaks
// again when it would anyhow, to everyone.
func TestRefused(t *testing.T) {
	s := newServer(t)
	for _, a := range s.step(mono.Instant(100*time.Millisecond), owner.Refused{Kind: leasehold.ErrNotFound}) {
		if _, ok := a.(owner.Send); ok {
			t.Error("it speaks at once")
		}
	}
	if s.wake < mono.Instant(1800*time.Millisecond) || s.wake > mono.Instant(2100*time.Millisecond) {
		t.Errorf("who has no lease speaks again at %v, want 2 s after it was refused", s.wake)
	}
	now := s.wake
	s.did(s.machine.Advance(now))
	s.hear(now, s.reply())
	s.hear(now, s.reply(offer(0, 10, 1, true)))
	s.hear(now, s.reply(offer(0, 10, 1, false)))
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
		t.Error("its leases are not suspended at their deadline")
	}
}

// The first refusal is told to the operator, with its kind.
func TestRefusedIsNoted(t *testing.T) {
	s := newServer(t)
	for _, a := range s.step(mono.Instant(100*time.Millisecond), owner.Refused{Kind: leasehold.ErrLimit}) {
		if n, ok := a.(owner.Note); ok && n.What == owner.NoteServerRefuse && n.Have == uint64(leasehold.ErrLimit) {
			return
		}
	}
	t.Error("nobody is told")
}

// sent returns whom the owner spoke to: nobody, one manager, or "everyone".
func sent(actions []owner.Action) string {
	for _, a := range actions {
		if s, ok := a.(owner.Send); ok {
			if s.To == "" {
				return "everyone"
			}
			return string(s.To)
		}
	}
	return "nobody"
}

// When the connection to the leader breaks there is no use in waiting for it;
// other connections do not matter.
func TestHungUp(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply())
	s.hear(0, s.reply(offer(0, 10, 1, true)))
	s.hear(0, s.reply(offer(0, 10, 1, false)))
	calm := s.wake
	s.step(1, owner.HungUp{Manager: "other"})
	if s.wake != calm {
		t.Errorf("it wants to be woken at %v, and not at %v, for a manager that does not lead", s.wake, calm)
	}
	s.step(1, owner.HungUp{Manager: "m"})
	if s.wake > mono.Instant(time.Second) {
		t.Errorf("the leader has hung up, and it waits until %v", s.wake)
	}
	if to := sent(s.did(s.machine.Advance(s.wake))); to != "everyone" {
		t.Errorf("the leader has hung up, and it speaks to %s", to)
	}
	s.wantLeases(offer(0, 10, 1, false).Lease)
}

// A hint to a leader that is newer than any is followed, whatever was before;
// others are not, while the leader answers.
func TestHintToANewerLeader(t *testing.T) {
	s := newServer(t)
	s.hear(0, s.reply())
	s.hear(0, s.reply(offer(0, 10, 1, true)))
	s.hear(0, s.reply(offer(0, 10, 1, false)))
	calm := s.wake
	s.step(1, owner.Redirect{NotLeader: protocol.NotLeader{Term: 1, Leader: "n"}})
	if s.wake != calm {
		t.Errorf("a hint of its own leader's term wakes it at %v", s.wake)
	}
	told := s.step(1, owner.Redirect{NotLeader: protocol.NotLeader{Term: 2, Leader: "n"}})
	if to := sent(told); to == "nobody" {
		told = s.did(s.machine.Advance(s.wake))
	}
	if to := sent(told); to != "n" || s.wake > mono.Instant(4*time.Second) {
		t.Errorf("a hint to a newer leader makes it speak to %s", to)
	}
}
