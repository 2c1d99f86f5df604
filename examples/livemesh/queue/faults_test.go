package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// serve runs a server of queues on a node.
func serve(t *testing.T, n *leaseholdtest.Node, cfg queue.Config) func(context.Context) error {
	t.Helper()
	s, err := queue.Join(t.Context(), n.MovingConfig(), cfg)
	return meshtest.Serve(t, n, s, err)
}

// client returns a client of queues on a node.
func client(t *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *queue.Client {
	t.Helper()
	return &queue.Client{Client: meshtest.Client(t, c, n)}
}

// TestNothingIsLostSilently: while servers and managers are killed, paused, partitioned and
// restarted, each acknowledged message is received, or a loss is reported to its device.
func TestNothingIsLostSilently(t *testing.T) {
	runs := meshtest.Runs(30)
	var total promise.Tally
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				total.Add(play(t, c, seed))
			})
		})
	}
	t.Logf("%d runs: %d messages acknowledged, %d of them lost, all reported", runs, total.Due, total.Lost)
	if total.Lost == 0 || total.Due < 50*runs {
		t.Error("too few requests for a valid test")
	}
}

func play(t *testing.T, c *leaseholdtest.Cluster, seed uint64) (tally promise.Tally) {
	e := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start: func(n *leaseholdtest.Node) func(context.Context) error {
			return serve(t, n, queue.Config{Room: 20})
		},
	}
	e.Begin(c, "a", "b", "c")
	sending, stop := context.WithCancel(t.Context())
	defer stop()
	receiving, done := context.WithCancel(t.Context())
	defer done()
	var senders sync.WaitGroup
	var receivers errgroup.Group
	var devices [3]*promise.Device
	var sent [3][2]promise.Acknowledged
	for i := range devices {
		n := c.Node(fmt.Sprint("device-", i))
		d := promise.NewDevice(n.Name(), client(t, c, n))
		devices[i] = d
		receivers.Go(func() error { return d.Receive(receiving, rand.New(rand.NewPCG(seed, uint64(100+i))), 30*time.Second) })
		for from := range 2 {
			sender := c.Node(fmt.Sprintf("sender-%d-%d", i, from))
			api, random := client(t, c, sender), rand.New(rand.NewPCG(seed, uint64(10*i+from)))
			senders.Go(func() { sent[i][from] = promise.Enqueue(sending, sender.Name(), api, n.Name(), random) })
		}
	}
	for range 3 {
		c.Advance(3 * time.Second)
		t.Log(e.Hurt())
	}
	c.Settle()
	stop()
	senders.Wait()
	done()
	if err := receivers.Wait(); err != nil {
		t.Error(err)
	}
	for i, d := range devices {
		for _, enqueued := range sent[i] {
			checked, err := d.Check(enqueued)
			if err != nil {
				t.Error(err)
			}
			tally.Add(checked)
		}
	}
	return tally
}
