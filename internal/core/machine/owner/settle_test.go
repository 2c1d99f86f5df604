package owner_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// newPromisingServer returns an owner with Config.Promises that holds two leases.
func newPromisingServer(t *testing.T) *server {
	t.Helper()
	cfg := serverConfig()
	cfg.KeepSuspended = time.Hour
	cfg.Promises = true
	m, err := owner.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, machine: m}
	s.did(m.Advance(0))
	s.receive(0, s.reply(offer(0, 10, 1, true), offer(20, 30, 2, true)))
	return s
}

func sends(actions []owner.Action) (n int) {
	for _, a := range actions {
		if _, ok := a.(owner.Send); ok {
			n++
		}
	}
	return n
}

// In whatever way a lease ends, no request is sent before its promises have ended.
func TestNoRequestBeforeSettled(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func(s *server) []owner.Action
	}{
		{"recalled", func(s *server) []owner.Action { return s.receive(1, s.reply(offer(20, 30, 2, false))) }},
		{"a part recalled", func(s *server) []owner.Action {
			return s.receive(1, s.reply(offer(0, 9, 1, false), offer(20, 30, 2, false)))
		}},
		{"refused", func(s *server) []owner.Action {
			r := s.reply()
			r.Refusal = leasehold.ErrNotFound
			return s.receive(1, r)
		}},
		{"left", func(s *server) []owner.Action { return s.step(1, owner.Leave{}) }},
		{"slept", func(s *server) []owner.Action { return s.step(1, owner.Slept{}) }},
		{"kept too long", func(s *server) []owner.Action {
			s.did(s.machine.Advance(mono.Instant(20 * time.Second)))
			return s.did(s.machine.Advance(mono.Instant(2 * time.Hour)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newPromisingServer(t)
			actions := c.ends(s)
			late := mono.Instant(time.Minute)
			number, published := uint64(0), false
			for _, a := range actions {
				switch a := a.(type) {
				case owner.Publish:
					published = true
				case owner.Settle:
					number = a.Number
					if !published {
						t.Error("Settle precedes Publish")
					}
				}
			}
			if number == 0 || sends(actions) > 0 {
				t.Fatalf("actions %v, want Settle and no Send", actions)
			}
			for now := mono.Instant(30 * time.Second); now < late; now += mono.Instant(time.Second) {
				actions := s.did(s.machine.Advance(now))
				if sends(actions) > 0 {
					t.Fatalf("request at %v, before Settled", now)
				}
				for _, a := range actions {
					if settle, ok := a.(owner.Settle); ok { // the other leases have expired
						number = settle.Number
					}
				}
			}
			if got := sends(s.step(late, owner.Settled{Number: number - 1})); got > 0 {
				t.Error("request after Settled with an earlier number")
			}
			if got := sends(s.step(late, owner.Settled{Number: number})); got != 1 {
				t.Errorf("%d requests after Settled, want 1", got)
			}
			if s.wake == mono.Never && c.name != "left" {
				t.Error("no next wake")
			}
		})
	}
}

// Without Config.Promises an owner does not wait. Grants and renewals do not need Settle.
func TestNothingToSettle(t *testing.T) {
	s := newServer(t)
	s.receive(0, s.reply(offer(0, 10, 1, true)))
	if got := sends(s.receive(1, s.reply())); got != 1 {
		t.Errorf("%d requests after a recall, want 1", got)
	}
	s = newPromisingServer(t)
	for _, a := range s.receive(1, s.reply(offer(0, 10, 1, false), offer(20, 30, 2, false), offer(40, 50, 3, true))) {
		if _, ok := a.(owner.Settle); ok {
			t.Error("Settle after a grant")
		}
	}
}

// Random sequences of events: no request is sent while promises on published leases last.
func TestNoRequestBreaksAPromise(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := newPromisingServer(t)
		now, generation := mono.Instant(1), leasehold.Generation(3)
		unsettled, asked := uint64(0), uint64(0)
		for range 60 {
			now = now.Add(time.Duration(r.Int64N(int64(3 * time.Second))))
			var actions []owner.Action
			switch r.IntN(8) {
			case 0:
				actions = s.receive(now, s.reply())
			case 1, 2:
				generation++
				actions = s.receive(now, s.reply(offer(0, 10, generation, true)))
			case 3:
				actions = s.receive(now, s.reply(protocol.Offer{Lease: leasehold.Lease{Range: leasehold.Range{Start: 0, Limit: 5}, Generation: generation}}))
			case 4:
				actions = s.step(now, owner.Slept{})
			case 5:
				actions = s.did(s.machine.Advance(now))
			default:
				unsettled = 0
				actions = s.step(now, owner.Settled{Number: asked})
			}
			for _, a := range actions {
				switch a := a.(type) {
				case owner.Settle:
					unsettled, asked = a.Number, a.Number
				case owner.Send:
					if unsettled != 0 {
						t.Fatalf("seed %d: at %v a request with leases %v, before Settled with number %d", seed, now, a.Request.Leases, unsettled)
					}
				}
			}
		}
	}
}

// An owner that has slept and holds back its next request drops replies to earlier requests: the deadline of
// those leases would count from before the clock stood still.
func TestRepliesFromBeforeASleepAreDropped(t *testing.T) {
	s := newPromisingServer(t)
	answer := s.reply(offer(0, 10, 1, false), offer(40, 50, 3, true))
	s.step(1, owner.Slept{})
	s.receive(2, answer)
	if held := s.machine.View().Leases; len(held) > 0 {
		t.Errorf("it holds %v, want none", held)
	}
}
