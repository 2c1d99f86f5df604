package owner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// If a lease ends while the application installs its state, OnRevoke is called, so that
// the application frees the memory, but only after
// install has returned.
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
			time.Sleep(999 * time.Millisecond) // the session has ended
		}, leasehold.CauseLeft},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				move := installing(t, nil)
				c.end(t, move.b.owner)
				if got := move.cause(); got != leasehold.CauseUnknown {
					t.Errorf("OnRevoke is called with %v during install", got)
				}
				move.put()
				if got := move.cause(); got != c.want {
					t.Errorf("after install OnRevoke is called with %v, want %v", got, c.want)
				}
			})
		})
	}
}

// The end of a lease is reported if it is between the return of install and the call of
// installed.
func TestEndsWhenInstalled(t *testing.T) {
	held := leasehold.Lease{Range: leasehold.Range{Start: 10, Limit: 20}, Generation: 5}
	c := newCallbacks(&Config{}, nil)
	c.installing(held.Generation)
	c.installed(held.Generation)
	c.change(nil, nil, nil, []revocation{{[]leasehold.Lease{held}, leasehold.CauseExpired}})
	if d := c.difference(); len(d.revoked) != 1 || d.revoked[0].leases[0] != held || len(c.deferred) > 0 {
		t.Errorf("revoked %v", d.revoked)
	}
}
