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

// TestLinearizable: while servers are killed, paused, partitioned, restarted and drained, the
// history of every entry is linearizable as a register that is reset when a lookup reports
// a loss.
func TestLinearizable(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				history := runWithFaults(t, c, seed)
				if len(history) < 50 {
					t.Errorf("only %d requests", len(history))
				}
				if !porcupine.CheckOperations(oracle.RegisterModel(), history) {
					t.Errorf("the history is not linearizable: %+v", history)
				}
			})
		})
	}
}

// TestLinearizableWhileMoving: the same while entries are transferred between servers under
// load. Nothing is lost.
func TestLinearizableWhileMoving(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				start(c.Node("a"))
				start(c.Node("b"))
				c.Settle()
				w := newRecorder(t, c, seed)
				w.ask(300, time.Millisecond)
				for i := range 20 {
					c.Move(leasehold.All, []string{"a", "b"}[i%2])
				}
				history := w.end()
				if !porcupine.CheckOperations(oracle.RegisterModel(), history) {
					t.Errorf("the history is not linearizable: %+v", history)
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

// TestEarlierTenure: a server ignores an entry from an earlier lease if another server owned
// the key in between, whether or not the memory was freed (step 2 of figure 4).
func TestEarlierTenure(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		kept := &table{entries: map[string]entry{}}
		mover := n.Mover()
		mover.Export, mover.Import = kept.export, kept.importEntries
		kept.owner = n.Join(owner.Config{Mover: mover}) // without OnRevoke: it drops nothing
		n.Serve(kept)
		c.Settle()
		api := &caller{c.Node("caller").Lookup(), c.Node("caller").Client()}
		api.call(t, http.MethodPut, "/colour", "green")
		start(c.Node("b"))
		n.Expire()
		c.Settle()
		c.Move(leasehold.All, "a")
		if got := api.call(t, http.MethodGet, "/colour", ""); got != "" {
			t.Errorf("the colour is %q, from an earlier lease", got)
		}
		kept.mu.Lock()
		defer kept.mu.Unlock()
		if _, there := kept.entries["/colour"]; !there {
			t.Error("the entry was dropped: the test is void")
		}
	})
}

func runWithFaults(t *testing.T, c *leaseholdtest.Cluster, seed uint64) []porcupine.Operation {
	e := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start:  func(n *leaseholdtest.Node) func(context.Context) error { return start(n).owner.Close },
	}
	e.Begin(c, "a", "b", "c")
	w := newRecorder(t, c, seed)
	w.ask(40, 1500*time.Millisecond)
	for range 4 {
		w.history.Fault()
		t.Log(e.Strike()) // Strike settles, so that every loss belongs to the last fault
	}
	return w.end()
}

// A recorder records the requests of callers, and losses.
type recorder struct {
	t                 *testing.T
	cluster           *leaseholdtest.Cluster
	seed              uint64
	history           *oracle.Registers
	callers, watchers sync.WaitGroup
	stop              context.CancelFunc
}

func newRecorder(t *testing.T, c *leaseholdtest.Cluster, seed uint64) *recorder {
	watching, stop := context.WithCancel(t.Context())
	w := &recorder{t: t, cluster: c, seed: seed, history: oracle.NewRegisters("/home", "/work", "/phone"), stop: stop}
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

// ask starts callers.
func (w *recorder) ask(times int, every time.Duration) {
	for i := range 3 {
		n := w.cluster.Node(fmt.Sprint("caller", i))
		api, random := &caller{n.Lookup(), n.Client()}, rand.New(rand.NewPCG(w.seed, uint64(i)))
		w.callers.Go(func() {
			w.history.Ask(i, times, every, random, func(in *oracle.Request) (oracle.Answer, error) {
				return api.request(w.t.Context(), in)
			})
		})
	}
}

// end waits until all callers have ended, and returns the history.
func (w *recorder) end() []porcupine.Operation {
	w.callers.Wait()
	w.cluster.Settle()
	w.stop()
	w.watchers.Wait()
	return w.history.History()
}

// request executes a request of the history. There are no swaps.
func (c *caller) request(ctx context.Context, in *oracle.Request) (oracle.Answer, error) {
	method, options := http.MethodPut, []lookup.DoOption(nil) // writes are not retried
	if in.Do != oracle.Write {
		in.Do = oracle.Read
		method, options = http.MethodGet, []lookup.DoOption{lookup.WithIdempotent()}
	}
	value, err := c.ask(ctx, method, in.Name, in.Value, options...)
	return oracle.Answer{Value: value}, err
}
