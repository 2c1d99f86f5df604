package leasemap_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// While every server restarts, one after the other, no acknowledged
// write is lost.
func TestRollingRestart(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		names := []string{"a", "b", "c"}
		leave := make(map[string]func(context.Context) error)
		for _, name := range names {
			leave[name] = serve(t, c.Node(name))
		}
		c.Settle()
		caller := newClient(c.Node("caller"))
		const users = 100
		for i := range users {
			mustSet(t, caller, fmt.Sprint("user-", i), "before")
		}
		for _, name := range names {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if err := leave[name](ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
			c.Node(name).Kill() // after Close
			serve(t, c.Node(name))
			c.Settle()
		}
		for i := range users {
			name := fmt.Sprint("user-", i)
			if got, err := caller.call(t.Context(), http.MethodGet, name, reply{}, false); err != nil || got.Value != "before" {
				t.Errorf("%s is %q after the restarts: %v", name, got.Value, err)
			}
		}
	})
}

func mustSet(t *testing.T, c *client, name, value string) {
	t.Helper()
	if _, err := c.call(t.Context(), http.MethodPut, name, reply{Value: value}, false); err != nil {
		t.Fatal(err)
	}
}

// Servers, managers and callers are killed, paused,
// partitioned and restarted. The history of the callers is linearizable: registers
// execute one request at a time, and are lost when a lookup reports a loss.
func TestLinearizableUnderFaults(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 4
	}
	lost, found, unknown := 0, 0, 0
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
				history := live(t, c, seed, leasemap.Config[string]{})
				for _, o := range history {
					switch out := o.Output.(oracle.Answer); {
					case o.Input.(oracle.Request).Do == oracle.Lose:
						lost++
					case out.Unknown:
						unknown++
					case out.Value != "":
						found++
					}
				}
				if result := porcupine.CheckOperations(oracle.RegisterModel(), history); !result {
					t.Errorf("the history is not linearizable: %+v", history)
				}
			})
		})
	}
	t.Logf("%d histories: %d reads found a value, %d requests are indeterminate, %d values were lost", seeds, found, unknown, lost)
	if found < 10*seeds || unknown == 0 || lost == 0 {
		t.Error("the history has too few operations")
	}
}

// live runs a cluster for some minutes, and returns the history. With a store, no fault loses a value.
func live(t *testing.T, c *leaseholdtest.Cluster, seed uint64, cfg leasemap.Config[string]) []porcupine.Operation {
	history := oracle.NewRegisters("alice", "bob", "carol")
	nemesis := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start:  func(n *leaseholdtest.Node) func(context.Context) error { return serveMap(t, n, cfg) },
	}
	nemesis.Begin(c, "a", "b", "c")
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	var watchers, clients sync.WaitGroup
	watcher := c.Node("watcher").Lookup()
	watchers.Go(func() {
		for loss, err := range watcher.Losses(watching) {
			if err != nil {
				break
			}
			if cfg.Store == nil {
				history.Lost(loss)
			}
		}
	})
	for i := range 3 {
		caller := newClient(c.Node(fmt.Sprint("caller", i)))
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			history.Ask(i, 60, time.Second, random, func(in *oracle.Request) (oracle.Answer, error) {
				return caller.request(t.Context(), in)
			})
		})
	}
	for range 6 {
		history.Fault()
		t.Log(nemesis.Strike()) // followed by a settle, so that every loss is from the last fault
	}
	clients.Wait()
	c.Settle()
	stop()
	watchers.Wait()
	return history.History()
}

// request executes an operation on a register.
func (c *client) request(ctx context.Context, in *oracle.Request) (oracle.Answer, error) {
	if in.Do == oracle.Write {
		_, err := c.call(ctx, http.MethodPut, in.Name, reply{Value: in.Value}, false)
		return oracle.Answer{}, err
	}
	was, err := c.call(ctx, http.MethodGet, in.Name, reply{}, false)
	if err != nil || in.Do == oracle.Read {
		in.Do = oracle.Read // no write was tried
		return oracle.Answer{Value: was.Value}, err
	}
	in.Want = was.Value
	_, err = c.call(ctx, http.MethodPut, in.Name, reply{Value: in.Value, Version: was.Version}, true)
	if errors.Is(err, leasehold.ErrStale) {
		return oracle.Answer{}, nil
	}
	return oracle.Answer{Swapped: true}, err
}
