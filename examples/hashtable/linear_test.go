package main

import (
	"context"
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
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// TestLinearizable: what callers see of entries, while servers are killed, paused, cut off,
// restarted and moved from, is what registers do that are asked one request at a time, and
// that are lost when a lookup says so.
func TestLinearizable(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				history := live(t, c, seed)
				if len(history) < 50 {
					t.Errorf("%d requests prove little", len(history))
				}
				if !porcupine.CheckOperations(oracle.RegisterModel(), history) {
					t.Errorf("this is not what registers do: %+v", history)
				}
			})
		})
	}
}

// TestLinearizableWhileMoving: the same while entries go from server to server and requests
// come at every moment of it. Nothing is lost.
func TestLinearizableWhileMoving(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				start(c.Node("a"))
				start(c.Node("b"))
				c.Settle()
				w := watch(t, c, seed)
				w.ask(300, time.Millisecond)
				for i := range 20 {
					c.Move(leasehold.All, []string{"a", "b"}[i%2])
				}
				history := w.end()
				if !porcupine.CheckOperations(oracle.RegisterModel(), history) {
					t.Errorf("this is not what registers do: %+v", history)
				}
				for _, o := range history {
					if o.Input.(oracle.Request).Do == oracle.Lose {
						t.Errorf("lost: %+v", o)
					}
				}
			})
		})
	}
}

// TestEarlierTenure: what a server has kept of a key that was another's meanwhile is not
// true any more, whether or not its memory was freed (step 2 of figure 4).
func TestEarlierTenure(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		kept := &table{entries: map[string]entry{}}
		mover := n.Mover()
		mover.Export, mover.Import = kept.export, kept.take
		kept.owner = n.Join(owner.Config{Mover: mover}) // and forgets nothing
		n.Serve(kept)
		c.Settle()
		asks := &caller{c.Node("caller").Lookup(), c.Node("caller").Client()}
		asks.call(t, http.MethodPut, "/colour", "green")
		start(c.Node("b"))
		n.Expire()
		c.Settle()
		c.Move(leasehold.All, "a")
		if got := asks.call(t, http.MethodGet, "/colour", ""); got != "" {
			t.Errorf("the colour is %q, of an earlier tenure", got)
		}
		kept.mu.Lock()
		defer kept.mu.Unlock()
		if _, there := kept.entries["/colour"]; !there {
			t.Error("it was forgotten, which proves nothing")
		}
	})
}

func live(t *testing.T, c *leaseholdtest.Cluster, seed uint64) []porcupine.Operation {
	e := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start:  func(n *leaseholdtest.Node) func(context.Context) error { return start(n).owner.Close },
	}
	e.Begin(c, "a", "b", "c")
	w := watch(t, c, seed)
	w.ask(40, 1500*time.Millisecond)
	for range 4 {
		w.history.Fault()
		t.Log(e.Strike()) // it settles, so that every loss is that of the last one
	}
	return w.end()
}

// A witness writes down what callers see, and what is lost.
type witness struct {
	t                 *testing.T
	cluster           *leaseholdtest.Cluster
	seed              uint64
	history           *oracle.Registers
	callers, watchers sync.WaitGroup
	stop              context.CancelFunc
}

func watch(t *testing.T, c *leaseholdtest.Cluster, seed uint64) *witness {
	watching, stop := context.WithCancel(t.Context())
	w := &witness{t: t, cluster: c, seed: seed, history: oracle.NewRegisters("/home", "/work", "/phone"), stop: stop}
	lookup := c.Node("watcher").Lookup()
	w.watchers.Go(func() {
		for loss, err := range lookup.Losses(watching) {
			if err != nil {
				break
			}
			w.history.Lost(loss)
		}
	})
	return w
}

// ask has callers ask.
func (w *witness) ask(times int, every time.Duration) {
	for i := range 3 {
		n := w.cluster.Node(fmt.Sprint("caller", i))
		asks, random := &caller{n.Lookup(), n.Client()}, rand.New(rand.NewPCG(w.seed, uint64(i)))
		w.callers.Go(func() {
			w.history.Ask(i, times, every, random, func(in *oracle.Request) (oracle.Answer, error) {
				return asks.request(w.t.Context(), in)
			})
		})
	}
}

// end returns what was written when all have ended.
func (w *witness) end() []porcupine.Operation {
	w.callers.Wait()
	w.cluster.Settle()
	w.stop()
	w.watchers.Wait()
	return w.history.History()
}

// request carries out what is to be done to an entry. There are no swaps.
func (c *caller) request(ctx context.Context, in *oracle.Request) (oracle.Answer, error) {
	method, options := http.MethodPut, []lookup.DoOption(nil) // a write that is repeated is two writes
	if in.Do != oracle.Write {
		in.Do = oracle.Read
		method, options = http.MethodGet, []lookup.DoOption{lookup.WithIdempotent()}
	}
	value, err := c.ask(ctx, method, in.Name, in.Value, options...)
	return oracle.Answer{Value: value}, err
}
