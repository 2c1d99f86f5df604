package owner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// An owner whose clock is slower than the drift bound allows can prove it, if it is by enough. It
// drops all leases, says so, and is silent and deaf until others have them. A clock at the bound,
// or one that is too fast, costs nothing.
func TestClockBeyondTheBound(t *testing.T) {
	all := leasehold.Lease{Range: leasehold.All, Generation: 1}
	for _, c := range []struct {
		name    string
		rate    float64 // of the leader's clock, seen from ours
		noticed bool
	}{
		{"alike", 1, false},
		{"at the bound", 1.19, false},
		{"slower than it allows", 1.3, true},
		{"half as fast", 2, true},
		{"faster than it allows", 0.5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			now := mono.Instant(0)
			noticed := false
			for i := 0; i < 40 && !noticed; i++ {
				now = now.Add(5 * time.Millisecond) // the way there and back
				r := s.reply(offer(0, 0, 1, i == 0))
				r.Clock = mono.Instant(c.rate * float64(now))
				actions := s.hear(now, r)
				noticed = slices.ContainsFunc(actions, func(a owner.Action) bool {
					n, is := a.(owner.Note)
					return is && n.What == owner.NoteClockSlow
				})
				if noticed {
					break
				}
				s.wantLeases(all)
				for seq := s.request.Seq; s.request.Seq == seq; {
					now = max(now, s.wake)
					s.did(s.machine.Advance(now))
				}
			}
			if noticed != c.noticed {
				t.Fatalf("it has noticed: %t, want %t", noticed, c.noticed)
			}
			if !noticed {
				return
			}
			s.wantLeases()
			said := s.request.Seq
			s.hear(now, s.reply(offer(0, 0, 2, true)))
			s.did(s.machine.Advance(s.wake - 1))
			s.wantLeases()
			if s.request.Seq != said || s.wake.Sub(now) < 2*10*time.Second {
				t.Errorf("it speaks again after %v, want not before others have its keys", s.wake.Sub(now))
			}
		})
	}
}
