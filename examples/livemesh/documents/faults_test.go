package documents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// serve runs a server of documents on a node.
func serve(t *testing.T, n *leaseholdtest.Node) func(context.Context) error {
	t.Helper()
	s, err := documents.Join(t.Context(), n.MovingConfig(), nil)
	return meshtest.Serve(t, n, s, err)
}

func client(t *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *documents.Client {
	t.Helper()
	return &documents.Client{Client: meshtest.Client(t, c, n)}
}

// TestLinearizable: while servers are killed, paused, partitioned and restarted, the history
// of every section is linearizable as a register that is reset when a lookup reports a loss.
func TestLinearizable(t *testing.T) {
	for seed := range uint64(meshtest.Runs(25)) {
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

func runWithFaults(t *testing.T, c *leaseholdtest.Cluster, seed uint64) []porcupine.Operation {
	history := oracle.NewRegisters("home", "work", "phone")
	e := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start:  func(n *leaseholdtest.Node) func(context.Context) error { return serve(t, n) },
	}
	e.Begin(c, "a", "b", "c")
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	watcher := c.Node("watcher").Lookup()
	var clients, watchers sync.WaitGroup
	watchers.Go(func() {
		for loss, err := range watcher.Losses(watching) {
			if err != nil {
				break
			}
			history.Lost(loss)
		}
	})
	for i := range 3 {
		asker := client(t, c, c.Node(fmt.Sprint("caller", i)))
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			history.Ask(i, 40, 1500*time.Millisecond, random, func(in *oracle.Request) (oracle.Answer, error) {
				return request(t.Context(), asker, in)
			})
		})
	}
	for range 4 {
		history.Fault()
		t.Log(e.Strike()) // Strike settles, so that every loss belongs to the last fault
	}
	clients.Wait()
	c.Settle()
	stop()
	watchers.Wait()
	return history.History()
}

const section = "address"

// request executes a request of the history.
func request(ctx context.Context, c *documents.Client, in *oracle.Request) (oracle.Answer, error) {
	value, err := json.Marshal(in.Value)
	if err != nil {
		return oracle.Answer{}, err
	}
	change := documents.Change{Set: map[string]json.RawMessage{section: value}}
	if in.Do == oracle.Write {
		_, err := c.Change(ctx, in.Name, change)
		return oracle.Answer{}, err
	}
	d, err := c.Get(ctx, in.Name)
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		in.Do = oracle.Read // only the read was sent
		return oracle.Answer{}, err
	}
	have := d.Sections[section]
	was := ""
	if have.Data != nil {
		if err := json.Unmarshal(have.Data, &was); err != nil {
			return oracle.Answer{}, err
		}
	}
	if in.Do == oracle.Read {
		return oracle.Answer{Value: was}, nil
	}
	in.Want, change.If = was, map[string]string{section: have.Version}
	_, err = c.Change(ctx, in.Name, change)
	if errors.Is(err, leasehold.ErrStale) {
		return oracle.Answer{}, nil
	}
	return oracle.Answer{Swapped: true}, err
}
