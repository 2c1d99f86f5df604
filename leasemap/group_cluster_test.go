package leasemap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// An arena is a server with two maps.
type arena struct {
	group leasemap.Group
	users *leasemap.Map[string]
	rooms *leasemap.Map[int]
}

func joinArena(t *testing.T, n *leaseholdtest.Node) *arena {
	t.Helper()
	a := &arena{}
	a.users = leasemap.Add(&a.group, "", leasemap.Config[string]{})
	a.rooms = leasemap.Add(&a.group, "rooms", leasemap.Config[int]{})
	if err := a.group.Join(t.Context(), n.MovingConfig()); err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = a.group.Close(ctx) })
	return a
}

const arenaNames = 16

// fill sets each name in both maps, at its owner.
func fill(t *testing.T, servers ...*arena) {
	t.Helper()
	for i := range arenaNames {
		set := 0
		for _, a := range servers {
			_, err1 := a.users.Set(t.Context(), fmt.Sprint(i), fmt.Sprint("user ", i))
			_, err2 := a.rooms.Set(t.Context(), fmt.Sprint(i), i)
			if errors.Is(err1, leasehold.ErrNotOwner) != errors.Is(err2, leasehold.ErrNotOwner) {
				t.Errorf("one of two maps owns %d: %v, %v", i, err1, err2)
			}
			if err1 == nil && err2 == nil {
				set++
			}
		}
		if set != 1 {
			t.Fatalf("%d servers own %d", set, i)
		}
	}
}

// Callbacks of the configuration use the maps, although the owner may call them before Join has returned.
func TestGroupCallbacksUseMaps(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var g leasemap.Group
		users := leasemap.Add(&g, "users", leasemap.Config[string]{})
		n := c.Node("x")
		as, set := n.MovingConfig(), make(chan error, 1)
		as.OnGrant = func([]leasehold.Lease) {
			_, err := users.Set(t.Context(), "name", "value")
			set <- err
		}
		if err := g.Join(t.Context(), as); err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(ctx context.Context) { _ = g.Close(ctx) })
		if err := <-set; err != nil {
			t.Error(err)
		}
	})
}

// A server that closes moves the values of all of its maps. Before there were groups, an application could
// give the Mover of one map only to an owner, and lost the values of others without an error.
func TestGroupClosesWithoutLoss(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		x, y := joinArena(t, c.Node("x")), joinArena(t, c.Node("y"))
		c.Settle()
		fill(t, x, y)
		if x.users.Len() == 0 || x.users.Len() == arenaNames {
			t.Fatalf("x owns %d of %d names", x.users.Len(), arenaNames)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := x.group.Close(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range arenaNames {
			user, _, err1 := y.users.Get(fmt.Sprint(i))
			room, _, err2 := y.rooms.Get(fmt.Sprint(i))
			if err1 != nil || err2 != nil || user != fmt.Sprint("user ", i) || room != i {
				t.Errorf("%d: %q, %v; %d, %v", i, user, err1, room, err2)
			}
		}
		if x.users.Len()+x.rooms.Len() != 0 {
			t.Errorf("%d and %d names occupy memory of x", x.users.Len(), x.rooms.Len())
		}
	})
}

// A server of an earlier version of the application, with one map, takes ranges without values of the new
// map. It refuses others, and they stay.
func TestGroupBesideOneMap(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		x := joinArena(t, c.Node("x"))
		c.Settle()
		fill(t, x)
		n := c.Node("y")
		y, err := leasemap.Join(t.Context(), n.MovingConfig(), leasemap.Config[string]{})
		if err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(ctx context.Context) { _ = y.Close(ctx) })
		c.Advance(time.Minute) // the leader tries to move half of the ranges to y
		if x.rooms.Len() != arenaNames || x.users.Len()+y.Len() != arenaNames {
			t.Errorf("x has %d rooms and %d users, y %d users", x.rooms.Len(), x.users.Len(), y.Len())
		}
		for i := range arenaNames {
			if err := x.rooms.Delete(t.Context(), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := x.group.Close(ctx); err != nil {
			t.Error(err)
		}
		if y.Len() != arenaNames {
			t.Errorf("y has %d users", y.Len())
		}
	})
}

// An outage suspends all maps, and loses nothing of any.
func TestGroupInOutage(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("x")
		x := joinArena(t, n)
		c.Settle()
		fill(t, x)
		n.Cut()
		c.Advance(30 * time.Second)
		_, _, err1 := x.users.Get("1")
		_, _, err2 := x.rooms.Get("1")
		if !errors.Is(err1, leasehold.ErrSuspended) || !errors.Is(err2, leasehold.ErrSuspended) {
			t.Errorf("suspended: %v, %v", err1, err2)
		}
		n.Heal()
		c.Settle()
		for i := range arenaNames {
			if room, _, err := x.rooms.Get(fmt.Sprint(i)); err != nil || room != i {
				t.Errorf("%d: %d, %v", i, room, err)
			}
		}
	})
}

// If no other server has a map, Close returns an error instead of dropping the values silently.
func TestGroupWithoutTarget(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		x := joinArena(t, c.Node("x"))
		c.Settle()
		fill(t, x)
		n := c.Node("y")
		y, err := leasemap.Join(t.Context(), n.MovingConfig(), leasemap.Config[string]{})
		if err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(ctx context.Context) { _ = y.Close(ctx) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := x.group.Close(ctx); err == nil || !strings.Contains(err.Error(), "is lost") {
			t.Errorf("Close returns %v", err)
		}
	})
}
