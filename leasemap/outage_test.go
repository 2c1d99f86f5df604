package leasemap_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// While all managers are down all operations fail, and
// afterwards every value exists with its version, after an outage of any length (I11).
func TestOutageKeepsValues(t *testing.T) {
	for _, managers := range []int{1, 3} {
		for _, outage := range []time.Duration{30 * time.Second, time.Hour} {
			if testing.Short() && outage == time.Hour {
				continue
			}
			t.Run(fmt.Sprint(managers, " managers, ", outage), func(t *testing.T) {
				leaseholdtest.Run(t, leaseholdtest.Config{Managers: managers}, func(t *testing.T, c *leaseholdtest.Cluster) {
					const users = 100
					var servers []*leasemap.Map[string]
					for _, name := range []string{"a", "b", "c"} {
						m, err := leasemap.Join(t.Context(), c.Node(name).MovingConfig(), leasemap.Config[string]{})
						if err != nil {
							t.Fatal(err)
						}
						c.Node(name).Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
						servers = append(servers, m)
					}
					c.Settle()
					before := make(map[string]leasemap.Version)
					at := make(map[string]*leasemap.Map[string])
					for i := range users {
						name := fmt.Sprint("user-", i)
						for _, m := range servers {
							if v, err := m.Set(t.Context(), name, "online"); err == nil {
								before[name], at[name] = v, m
							}
						}
					}
					if len(before) != users {
						t.Fatalf("%d of %d names have an owner", len(before), users)
					}
					for i := range managers {
						c.KillManager(fmt.Sprint("m", i+1))
					}
					c.Advance(outage)
					for name, m := range at {
						_, _, got := m.Get(name)
						_, set := m.Set(t.Context(), name, "offline")
						_, update := m.Update(t.Context(), name, func(*string) error { return errors.New("called") })
						_, fresh := m.Set(t.Context(), name+"-x", "new")
						for what, err := range map[string]error{"get": got, "set": set, "update": update} {
							if leasehold.KindOf(err) != leasehold.ErrSuspended {
								t.Fatalf("%s of %s during the outage: %v", what, name, err)
							}
						}
						if fresh == nil {
							t.Fatalf("%s-x is written during the outage", name)
						}
					}
					for i := range managers {
						c.StartManager(fmt.Sprint("m", i+1))
					}
					c.Settle()
					for name, m := range at {
						if value, version, err := m.GetVersion(name); err != nil || value != "online" || version != before[name] {
							t.Fatalf("%s is %q, version %v, after the outage: %v; want version %v", name, value, version, err, before[name])
						}
					}
				})
			})
		}
	}
}

// The range of a partitioned server is granted to
// another. The values that the first has kept are removed and never served.
func TestSuspendedServerIsReplaced(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a := c.Node("a")
		m, err := leasemap.Join(t.Context(), a.MovingConfig(), leasemap.Config[string]{})
		if err != nil {
			t.Fatal(err)
		}
		a.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
		c.Settle()
		if _, err := m.Set(t.Context(), "alice", "old"); err != nil {
			t.Fatal(err)
		}
		a.Cut()
		serve(t, c.Node("b"))
		c.Settle()
		if _, _, err := m.Get("alice"); leasehold.KindOf(err) != leasehold.ErrSuspended || m.Len() != 1 {
			t.Errorf("while partitioned: %v, %d values", err, m.Len())
		}
		caller := newClient(c.Node("caller"))
		mustSet(t, caller, "alice", "new")
		a.Heal()
		c.Settle()
		if value, _, err := m.Get("alice"); err == nil && value != "new" { // the name may have moved back from b
			t.Errorf("the server returns %q of an earlier tenure", value)
		}
		c.Move(leasehold.All, "b")
		if got, err := caller.call(t.Context(), http.MethodGet, "alice", reply{}, false); err != nil || got.Value != "new" {
			t.Errorf("got %q, %v", got.Value, err)
		}
	})
}

// All managers are killed while values move to a
// server that has just joined, at different times of the move. For any outcome of the move,
// every value exists when a manager has restarted, and no loss is reported.
func TestOutageDuringMoves(t *testing.T) {
	interrupted, step := 0, 3*time.Millisecond
	if testing.Short() {
		step = 30 * time.Millisecond
	}
	for after := time.Duration(0); after <= 300*time.Millisecond; after += step {
		t.Run(after.String(), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				serve(t, c.Node("a"))
				c.Settle()
				caller := newClient(c.Node("caller"))
				const users = 50
				for i := range users {
					mustSet(t, caller, fmt.Sprint("user-", i), "online")
				}
				watching, stop := context.WithCancel(t.Context())
				lost := make(chan leasehold.Loss, 1000)
				watcher := c.Node("watcher").Lookup()
				go func() {
					defer close(lost)
					for loss, err := range watcher.Losses(watching) {
						if err != nil {
							break
						}
						lost <- loss
					}
				}()
				serve(t, c.Node("b"))
				c.Advance(after)
				before, _ := c.Owner(leasehold.KeyOf("user-0"))
				c.KillManager("m1")
				c.Advance(5 * time.Minute)
				c.StartManager("m1")
				c.Settle()
				if now, _ := c.Owner(leasehold.KeyOf("user-0")); now != before {
					interrupted++
				}
				for i := range users {
					name := fmt.Sprint("user-", i)
					if got, err := caller.call(t.Context(), http.MethodGet, name, reply{}, false); err != nil || got.Value != "online" {
						t.Errorf("%s is %q after the outage: %v", name, got.Value, err)
					}
				}
				stop()
				for loss := range lost {
					t.Errorf("unexpected loss: %+v", loss)
				}
			})
		})
	}
	if interrupted == 0 {
		t.Error("no outage has interrupted a move: the test checks nothing")
	}
}
