package lookup_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// 10,000 lookups that all received a reply at the same instant, and whose manager then fails, do not send their
// requests at the same time.
func TestLookupsSpreadRequests(t *testing.T) {
	const lookups = 10_000
	var asked []mono.Instant
	for i := range lookups {
		m, err := lookup.New(0, lookup.Config{Namespace: "n", ID: uint64(i + 1), Rand: rand.New(rand.NewPCG(uint64(i), 1))})
		if err != nil {
			t.Fatal(err)
		}
		m.Advance(0)
		_, wake := m.Step(10*ms, lookup.Reply{LookupReply: &protocol.LookupReply{
			Namespace: "n", Leader: "m", Term: 1, LSN: 2, Echo: 1, Snapshot: after(t, 2),
		}})
		for wake < 60*second {
			now := wake
			var actions []lookup.Action
			actions, wake = m.Advance(now)
			if slices.ContainsFunc(actions, func(a lookup.Action) bool { _, is := a.(lookup.Send); return is }) {
				asked = append(asked, now)
			}
		}
	}
	slices.Sort(asked)
	if len(asked) < 5*lookups {
		t.Fatalf("%d requests in a minute by %d lookups are too few for this test", len(asked), lookups)
	}
	// The jitter is up to an eighth of the poll interval: the first requests are spread over 625 ms.
	busiest := 0
	for first, at := range asked {
		last, _ := slices.BinarySearch(asked, at.Add(10*time.Millisecond))
		busiest = max(busiest, last-first)
	}
	if busiest > lookups/20 {
		t.Errorf("%d of %d lookups send within 10 ms", busiest, lookups)
	}
	t.Logf("%d requests in a minute, at most %d within 10 ms", len(asked), busiest)
}
