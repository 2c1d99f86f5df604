package fencetest

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// The late writer again, with real owners and a manager. They use virtual time, but the
// database does not: a goroutine outside makes its calls, and virtual time does not advance
// during a call.
func testRealOwners(t *testing.T, db Guarded) {
	type call struct {
		generation leasehold.Generation
		line       string
	}
	calls, results, done := make(chan call), make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		for c := range calls {
			results <- db.Append(t.Context(), "alice", c.generation, c.line)
		}
	}()
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		add := func(lease owner.Lease, line string) error {
			calls <- call{lease.Generation, line}
			return <-results
		}
		key := leasehold.KeyOf("alice")
		check := func(o *owner.Owner) owner.Lease {
			lease, ok := o.Check(key)
			if !ok {
				t.Fatalf("%s does not own the key", o.Name())
			}
			return lease
		}
		a := c.Node("a")
		first := a.Join(owner.Config{})
		c.Settle()
		old := check(first)
		if err := add(old, "a"); err != nil {
			t.Error(err)
		}
		a.Pause()
		second := c.Node("b").Join(owner.Config{})
		c.Settle()
		if err := add(check(second), "b"); err != nil {
			t.Error(err)
		}
		a.Resume() // continues with the old lease
		wantStale(t, add(old, "a, late"))
		if first.Held(old) {
			t.Error("the lease is held although another has taken over")
		}
	})
	close(calls)
	<-done
	wantLines(t, db, "alice", "a", "b")
}
