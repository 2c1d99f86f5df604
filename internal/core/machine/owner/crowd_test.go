package owner_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// Ten thousand owners whose leader hangs up at the same instant turn to the others at different times,
// long before their leases are over.
func TestOwnersDoNotMarchInStep(t *testing.T) {
	const owners = 10_000
	var spoke []mono.Instant
	for i := range owners {
		cfg := serverConfig()
		cfg.Rand = rand.New(rand.NewPCG(uint64(i), 1))
		m, err := owner.New(0, cfg)
		if err != nil {
			t.Fatal(err)
		}
		actions, _ := m.Advance(0)
		now := mono.Instant(50 * time.Millisecond) // a round trip
		for seq := protocol.Seq(1); spoken(actions); seq++ {
			actions, _ = m.Step(now, owner.Reply{LeaseReply: &protocol.LeaseReply{
				Namespace: "n", Session: leasehold.Session{1}, Leader: "m", Term: 1, Seq: seq, Echo: seq, Clock: now,
				Timing: protocol.DefaultTiming(), Offers: []protocol.Offer{offer(0, 0, 1, seq == 1)},
			}})
		}
		if len(m.View().Leases) != 1 {
			t.Fatal("it holds nothing")
		}
		gone := now.Add(time.Second)
		actions, wake := m.Step(gone, owner.HungUp{Manager: "m"})
		for !spoken(actions) {
			now = wake
			actions, wake = m.Advance(now)
		}
		if len(m.View().Leases) != 1 || now.Sub(gone) > time.Second {
			t.Fatalf("it speaks after %v, and has %v", now.Sub(gone), m.View().Leases)
		}
		spoke = append(spoke, now)
	}
	slices.Sort(spoke)
	busiest := 0
	for first, at := range spoke {
		last, _ := slices.BinarySearch(spoke, at.Add(10*time.Millisecond))
		busiest = max(busiest, last-first)
	}
	if busiest > owners/10 {
		t.Errorf("%d of %d speak within 10 ms", busiest, owners)
	}
	t.Logf("they speak within %v, at most %d within 10 ms", spoke[owners-1].Sub(spoke[0]), busiest)
}

// spoken reports whether a message is among what is to be done.
func spoken(actions []owner.Action) bool {
	return slices.ContainsFunc(actions, func(a owner.Action) bool { _, is := a.(owner.Send); return is })
}
