package demo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// changingTable is a table of one lease for each key.
type changingTable struct {
	aTable
	leases  map[leasehold.Key]lookup.Placement
	changed chan struct{}
}

func (c *changingTable) At(key leasehold.Key) (lookup.Placement, bool) {
	p, ok := c.leases[key]
	return p, ok
}

func (c *changingTable) Changed() <-chan struct{} { return c.changed }

// change is called by the goroutine under test only, which synctest.Wait guarantees.
func (c *changingTable) change(do func()) {
	synctest.Wait()
	do()
	before := c.changed
	c.changed = make(chan struct{})
	close(before)
}

// TestRecovery: a recovery ends when the last key of the killed server has a new lease, of any server.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		us := newUsers(3)
		placed := func(owner leasehold.OwnerID, g leasehold.Generation) lookup.Placement {
			return lookup.Placement{Owner: owner, Generation: g}
		}
		table := &changingTable{changed: make(chan struct{}), leases: map[leasehold.Key]lookup.Placement{
			us[0].key: placed("a", 1), us[1].key: placed("a", 2), us[2].key: placed("b", 3),
		}}
		l, _ := newTestLoad(&Config{Users: 3}, &table.aTable)
		l.table = table
		c := &cluster{journal: &journal{out: t.Output()}}
		n := newNemesis(c, l)
		leases := l.leasesOf("a")
		if len(leases) != 2 {
			t.Fatalf("%d keys, want 2", len(leases))
		}
		recovered := make(chan error)
		go func() { recovered <- n.recover(t.Context(), "a", leases) }()
		table.change(func() { delete(table.leases, us[0].key) })
		time.Sleep(time.Second)
		table.change(func() { table.leases[us[0].key] = placed("b", 4) })
		time.Sleep(time.Second)
		table.change(func() { table.leases[us[1].key] = placed("a", 5) })
		if err := <-recovered; err != nil {
			t.Fatal(err)
		}
		if f := n.sum(); len(f.RecoveryMillis) != 1 || f.RecoveryMillis[0] != 2000 || f.RecoveryMedianMillis != 2000 || f.RecoveryMaxMillis != 2000 {
			t.Errorf("got %+v, want 2 s", f)
		}
		if err := n.recover(t.Context(), "a", l.leasesOf("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("keys without a next owner: %v", err)
		}
	})
}
