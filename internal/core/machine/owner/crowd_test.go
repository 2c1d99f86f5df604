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

// 10,000 owners whose connections to the leader break at the same instant send to the other managers at different
// times, long before the deadline of their leases.
func TestOwnersSpreadRequests(t *testing.T) {
	const owners = 10_000
	var sentAt []mono.Instant
	for i := range owners {
		cfg := serverConfig()
		cfg.Rand = rand.New(rand.NewPCG(uint64(i), 1))
		m, err := owner.New(0, cfg)
		if err != nil {
			t.Fatal(err)
		}
		actions, _ := m.Advance(0)
		now := mono.Instant(50 * time.Millisecond) // a round trip
		for seq := protocol.Seq(1); hasSend(actions); seq++ {
			actions, _ = m.Step(now, owner.Reply{LeaseReply: &protocol.LeaseReply{
				Namespace: "n", Session: leasehold.Session{1}, Leader: "m", Term: 1, Seq: seq, Echo: seq, Clock: now,
				Timing: protocol.DefaultTiming(), Offers: []protocol.Offer{offer(0, 0, 1, seq == 1)},
			}})
		}
		if len(m.View().Leases) != 1 {
			t.Fatal("no lease was granted")
		}
		gone := now.Add(time.Second)
		actions, wake := m.Step(gone, owner.Disconnected{Manager: "m"})
		for !hasSend(actions) {
			now = wake
			actions, wake = m.Advance(now)
		}
		if len(m.View().Leases) != 1 || now.Sub(gone) > time.Second {
			t.Fatalf("request after %v with leases %v, want within 1 s with one lease", now.Sub(gone), m.View().Leases)
		}
		sentAt = append(sentAt, now)
	}
	slices.Sort(sentAt)
	busiest := 0
	for first, at := range sentAt {
		last, _ := slices.BinarySearch(sentAt, at.Add(10*time.Millisecond))
		busiest = max(busiest, last-first)
	}
	if busiest > owners/10 {
		t.Errorf("%d of %d owners send within 10 ms", busiest, owners)
	}
	t.Logf("requests within %v, at most %d within 10 ms", sentAt[owners-1].Sub(sentAt[0]), busiest)
}

// hasSend reports whether the actions contain a request.
func hasSend(actions []owner.Action) bool {
	return slices.ContainsFunc(actions, func(a owner.Action) bool { _, is := a.(owner.Send); return is })
}
