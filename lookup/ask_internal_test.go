package lookup

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Whatever managers say, under whatever name, each question goes to somebody, and to nobody twice
// but for names that are not in the list.
func TestAskerSurvivesAnything(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		names := []string{"a", "b", "c", "d"}
		managers := names[:1+r.IntN(3)]
		var sent []string
		a := newAsker(managers, time.Second, func(to string, _ *leaseholdv1.FollowRequest) { sent = append(sent, to) })
		for seq := uint64(1); seq < 100; seq++ {
			to := ""
			if r.IntN(4) > 0 {
				to = names[r.IntN(len(names))]
			}
			sent = nil
			a.ask(to, &leaseholdv1.FollowRequest{Seq: seq})
			for range r.IntN(8) {
				if r.IntN(3) == 0 {
					a.failed(a.asked)
					continue
				}
				a.answered(&protocol.LookupReply{
					Leader: storage.ManagerID(names[r.IntN(len(names))]), Leads: r.IntN(2) == 0,
					Echo: protocol.Seq(seq), Age: time.Duration(r.IntN(3)) * time.Second,
				})
				if r.IntN(4) == 0 {
					a.stay = 1 // it is time to leave
				}
			}
			if len(sent) == 0 || len(sent) > len(managers)+1 {
				t.Fatalf("seed %d: of %q a question went to %q", seed, managers, sent)
			}
			for _, m := range managers {
				if n := len(slices.DeleteFunc(slices.Clone(sent), func(to string) bool { return to != m })); n > 1 {
					t.Fatalf("seed %d: a question went to %q", seed, sent)
				}
			}
		}
	}
}
