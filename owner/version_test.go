package owner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Close of an owner with a Mover does not wait for an older leader, which does not support
// moves, to report that none are left.
func TestCloseWithLeaderWithoutMoves(t *testing.T) {
	for name, only := range map[string]bool{"version in every message": false, "version in the first message": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				leader, _ := n.lead(manager.Config{})
				said := false
				leader.revise = func(r *leaseholdv1.HoldResponse) {
					r.Version = 1
					if only && said {
						r.Version = 0
					}
					said = true
					if g := r.GetGrant(); g != nil {
						g.Idle, g.Departures, g.Arrivals = false, nil, nil
					}
				}
				a := n.counts("10.0.0.1:8080", asConfigured)
				newCrowd(t, a).until(10*time.Second, func() bool { return len(a.has()) == 256 })
				begun := time.Now()
				wantError(t, a.owner.Close(t.Context()), leasehold.ErrUnavailable, "the state of 1 range is lost")
				if took := time.Since(begun); took > time.Second {
					t.Errorf("Close took %v", took)
				}
				if leader.committed("(left)") == 0 {
					t.Errorf("changes %q", leader.changes)
				}
			})
		})
	}
}
