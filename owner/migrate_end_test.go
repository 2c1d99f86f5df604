package owner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A lease that ends while the application puts its state in its place is told to
// have ended, or the application would keep that for ever: but not before it is
// done with it.
func TestEndsWhileInstalling(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, o *Owner)
		want leasehold.Cause
	}{
		{"it takes too long", func(*testing.T, *Owner) { time.Sleep(5*time.Second + time.Millisecond) }, leasehold.CauseReleased},
		{"closed", func(t *testing.T, o *Owner) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			go func() { _ = o.Close(ctx) }()
			time.Sleep(999 * time.Millisecond) // the goodbye is over
		}, leasehold.CauseLeft},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				move := installing(t, nil)
				c.end(t, move.b.owner)
				if got := move.told(); got != leasehold.CauseUnknown {
					t.Errorf("while it is being installed, the application is told that it was %v", got)
				}
				move.put()
				if got := move.told(); got != c.want {
					t.Errorf("the application has installed it, and is told that it was %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A lease that ends when the application is done with its state, and before we know,
// is told to have ended.
func TestEndsWhenInstalled(t *testing.T) {
	held := leasehold.Lease{Range: leasehold.Range{Start: 10, Limit: 20}, Generation: 5}
	c := newCallbacks(&Config{}, nil)
	c.installing(held.Generation)
	c.installed(held.Generation)
	c.change(nil, nil, []revocation{{[]leasehold.Lease{held}, leasehold.CauseExpired}}, false)
	if d := c.difference(); len(d.revoked) != 1 || d.revoked[0].leases[0] != held || len(c.late) > 0 {
		t.Errorf("told %v", d.revoked)
	}
}
