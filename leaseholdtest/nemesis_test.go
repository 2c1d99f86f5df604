package leaseholdtest_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// Every fault occurs, the cluster recovers,
// and only the faults that may lose state do.
func TestNemesis(t *testing.T) {
	struck := make(map[string]int)
	for seed := range uint64(6) {
		leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
			var losses atomic.Int64
			watch(t, c, &losses)
			e := &leaseholdtest.Nemesis{Random: rand.New(rand.NewPCG(seed, 1)), Start: func(n *leaseholdtest.Node) func(context.Context) error {
				return start(t, n)
			}}
			e.Begin(c, "a", "b", "c")
			for range 10 {
				before := losses.Load()
				done := e.Strike()
				kind, _, _ := strings.Cut(done, " ")
				struck[kind]++
				lost := losses.Load() - before
				switch kind {
				case "restart", "move", "failover":
					if lost > 0 {
						t.Errorf("%s: %d losses", done, lost)
					}
				case "kill":
					if lost == 0 {
						t.Errorf("%s: no loss", done)
					}
				}
			}
		})
	}
	for _, kind := range []string{"kill", "pause", "cut", "move", "restart", "failover"} {
		if struck[kind] == 0 {
			t.Errorf("no %s among the faults: %v", kind, struck)
		}
	}
}

// A single server cannot be partitioned from other servers,
// and stays connected to the managers.
func TestNemesisOfOne(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Lease: time.Second}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var losses atomic.Int64
		watch(t, c, &losses)
		e := &leaseholdtest.Nemesis{Random: rand.New(rand.NewPCG(1, 1)), Start: func(n *leaseholdtest.Node) func(context.Context) error {
			start(t, n)
			return nil // no other owner can import its state
		}}
		e.Begin(c, "a")
		cuts := 0
		for range 15 {
			before := losses.Load()
			if done := e.Strike(); strings.Contains(done, "from the other servers") {
				cuts++
				if lost := losses.Load() - before; lost > 0 {
					t.Errorf("%s: %d losses", done, lost)
				}
			}
		}
		if cuts == 0 {
			t.Error("no fault was a partition from other servers")
		}
	})
}

// start runs a server with a Mover.
func start(t *testing.T, n *leaseholdtest.Node) func(context.Context) error {
	t.Helper()
	cfg := n.MovingConfig()
	m, err := leasemap.Join(t.Context(), cfg, leasemap.Config[string]{})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
	return m.Close
}

// watch counts losses.
func watch(t *testing.T, c *leaseholdtest.Cluster, losses *atomic.Int64) {
	n := c.Node("watcher")
	l := n.Lookup()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := range l.Losses(ctx) {
			if err != nil {
				break
			}
			losses.Add(1)
		}
	}()
	n.Cleanup(func(context.Context) {
		cancel()
		<-done
	})
}
