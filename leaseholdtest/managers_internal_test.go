package leaseholdtest

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// TestKilledManagersWriteNothing: a manager that was killed has no way to the store. It
// would use one to resign, now and then, while its goroutines end.
func TestKilledManagersWriteNothing(t *testing.T) {
	Run(t, Config{}, func(t *testing.T, c *Cluster) {
		store := c.managers["m1"].store
		if _, err := store.Record(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		c.KillManager("m1")
		if _, err := store.Record(t.Context(), true); leasehold.KindOf(err) != leasehold.ErrClosed {
			t.Errorf("the store of a manager that was killed answers %v", err)
		}
	})
}
