package leaseholdtest

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// A killed manager cannot write to the store. Otherwise it
// could resign while its goroutines end.
func TestKilledManagersWriteNothing(t *testing.T) {
	Run(t, Config{}, func(t *testing.T, c *Cluster) {
		store := c.managers["m1"].store
		if _, err := store.Record(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		c.KillManager("m1")
		if _, err := store.Record(t.Context(), true); leasehold.KindOf(err) != leasehold.ErrClosed {
			t.Errorf("the store of a killed manager returns %v", err)
		}
	})
}
