package leaseholdtest_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// An application's test has this form, with its own servers on the
// nodes, with their OwnerConfig, Listen and Dial.
func Example() {
	TestTakesOver := func(t *testing.T) {
		leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
			a, b := c.Node("a"), c.Node("b")
			a.Join(owner.Config{})
			takesOver := b.Join(owner.Config{})
			c.Settle()

			a.Kill()
			c.Settle() // the leases of a have expired

			if _, ok := takesOver.Check(leasehold.KeyOf("alice")); !ok {
				t.Error("b does not own alice")
			}
		})
	}
	fmt.Printf("%T\n", TestTakesOver)
	// Output: func(*testing.T)
}
