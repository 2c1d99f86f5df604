package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// serve runs a server of queues on a node.
func serve(t *testing.T, n *leaseholdtest.Node, cfg queue.Config) func(context.Context) error {
	t.Helper()
	as := n.MovingConfig()
	s, err := queue.Join(t.Context(), as, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = s.Close(ctx) })
	n.Serve(s.Handler())
	return s.Close
}

// client finds queues from a node.
func client(t *testing.T, n *leaseholdtest.Node) *queue.Client {
	t.Helper()
	base := &http.Transport{DialContext: n.DialContext}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: n.Lookup(), Key: queue.Key(), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { base.CloseIdleConnections() })
	return &queue.Client{HTTP: &http.Client{Transport: transport, Timeout: time.Minute}, URL: "http://queues"}
}

// A device is one that receives, and what it knows.
type device struct {
	name string

	mu       sync.Mutex
	received map[string]bool
	lost     []time.Time // when it learned that it had lost messages
	sent     map[string]time.Time
}

// receive takes messages until the context ends, and at last until there are none.
// Now and then it is offline.
func (d *device) receive(ctx context.Context, t *testing.T, c *queue.Client, random *rand.Rand) {
	var at queue.Place
	for last := false; ; {
		if random.IntN(10) == 0 {
			time.Sleep(time.Duration(random.IntN(30)) * time.Second)
		}
		waiting, wait := ctx, 10*time.Second
		if ctx.Err() != nil {
			waiting, wait, last = context.WithoutCancel(ctx), 0, true
		}
		b, err := c.Receive(waiting, d.name, at, wait)
		if err != nil {
			if last {
				t.Errorf("%s: at the end: %v", d.name, err)
				return
			}
			time.Sleep(100 * time.Millisecond)
			continue
		}
		d.mu.Lock()
		if b.Lost {
			d.lost = append(d.lost, time.Now())
		}
		for _, m := range b.Messages {
			if m.Missed {
				d.lost = append(d.lost, time.Now())
			}
			d.received[string(m.Body)] = true
		}
		d.mu.Unlock()
		at = b.Next(at)
		if last && len(b.Messages) == 0 {
			return
		}
	}
}

// send enqueues messages for a device, and notes those that were acknowledged.
func (d *device) send(ctx context.Context, t *testing.T, c *queue.Client, random *rand.Rand, from int) {
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		id := fmt.Sprintf(`"%d.%d"`, from, i)
		_, err := c.Enqueue(ctx, d.name, json(id), random.IntN(2) == 0)
		switch {
		case err == nil:
			d.mu.Lock()
			d.sent[id] = time.Now()
			d.mu.Unlock()
		case errors.Is(err, leasehold.Invalid):
			t.Error(err)
		}
	}
}

// json is a message that is JSON already.
type json string

func (j json) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// check holds what was acknowledged against what was received.
func (d *device) check(t *testing.T) (acknowledged, gone int) {
	for id, at := range d.sent {
		acknowledged++
		if d.received[id] {
			continue
		}
		gone++
		told := false
		for _, when := range d.lost {
			told = told || !when.Before(at)
		}
		if !told {
			t.Errorf("%s: message %s was acknowledged at %v, not received, and nobody was told of a loss since (%v)", d.name, id, at, d.lost)
		}
	}
	return acknowledged, gone
}

// TestNothingIsLostSilently: while servers and managers are killed, paused, cut off and
// restarted, each message that was acknowledged is received, or its device learns that it
// has lost some.
func TestNothingIsLostSilently(t *testing.T) {
	const runs = 30
	acknowledged, gone := 0, 0
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				e := &leaseholdtest.Nemesis{
					Random: rand.New(rand.NewPCG(seed, 99)),
					Start: func(n *leaseholdtest.Node) func(context.Context) error {
						return serve(t, n, queue.Config{Room: 20})
					},
				}
				e.Begin(c, "a", "b", "c")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var senders, receivers sync.WaitGroup
				var devices []*device
				receiving, done := context.WithCancel(t.Context())
				defer done()
				for i := range 3 {
					d := &device{name: fmt.Sprint("device-", i), received: make(map[string]bool), sent: make(map[string]time.Time)}
					devices = append(devices, d)
					receiver := client(t, c.Node(d.name))
					offline := rand.New(rand.NewPCG(seed, uint64(100+i)))
					receivers.Go(func() { d.receive(receiving, t, receiver, offline) })
					for from := range 2 {
						sender := client(t, c.Node(fmt.Sprintf("sender-%d-%d", i, from)))
						random := rand.New(rand.NewPCG(seed, uint64(10*i+from)))
						senders.Go(func() { d.send(ctx, t, sender, random, from) })
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
				receivers.Wait()
				for _, d := range devices {
					a, g := d.check(t)
					acknowledged, gone = acknowledged+a, gone+g
				}
			})
		})
	}
	t.Logf("%d runs: %d messages acknowledged, %d of them lost, all known", runs, acknowledged, gone)
	if gone == 0 || acknowledged < 50*runs {
		t.Error("that proves little")
	}
}
