package lookup

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// With any sequence of replies and failures, of any managers, each request goes to at least one manager, and to no
// configured manager twice.
func TestTargetGetsARequestOnce(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		names := []storage.ManagerID{"a", "b", "c", "d"}
		managers := names[:1+r.IntN(3)]
		tg := newTarget(managers, time.Second, r)
		for seq := protocol.Seq(1); seq < 100; seq++ {
			var hint storage.ManagerID
			if r.IntN(4) > 0 {
				hint = names[r.IntN(len(names))]
			}
			sent := []storage.ManagerID{tg.choose(hint, &protocol.LookupRequest{Seq: seq})}
			for range r.IntN(8) {
				var passed bool
				if r.IntN(3) == 0 {
					passed, _ = tg.failed(tg.current)
				} else if tg.request != nil {
					passed = tg.answered(&protocol.LookupReply{
						Leader: names[r.IntN(len(names))], Leads: r.IntN(2) == 0,
						Echo: seq, Age: time.Duration(r.IntN(3)) * time.Second,
					})
				}
				if passed {
					sent = append(sent, tg.current)
				}
				if r.IntN(4) == 0 {
					tg.stay = 1 // the lookup leaves its source next
				}
			}
			if len(sent) > len(managers)+1 {
				t.Fatalf("seed %d: a request to %q went to %q", seed, managers, sent)
			}
			for _, m := range managers {
				if n := len(slices.DeleteFunc(slices.Clone(sent), func(to storage.ManagerID) bool { return to != m })); n > 1 {
					t.Fatalf("seed %d: a request went to %q", seed, sent)
				}
			}
		}
	}
}
