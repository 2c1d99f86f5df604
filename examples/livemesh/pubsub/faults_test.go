package pubsub_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// httpClient finds the servers of a service from a node.
func httpClient(t *testing.T, c *leaseholdtest.Cluster, n *leaseholdtest.Node) *http.Client {
	t.Helper()
	cfg := n.LookupConfig()
	cfg.Namespace = c.Namespace()
	l, err := lookup.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{DialContext: n.DialContext}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: leasehttp.PathSegment(2), Base: base})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) {
		base.CloseIdleConnections()
		_ = l.Close()
	})
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// A mesh is both services on one cluster.
type mesh struct {
	t              *testing.T
	queues, topics *leaseholdtest.Cluster
}

func (m *mesh) queueClient(n *leaseholdtest.Node) *queue.Client {
	return &queue.Client{HTTP: httpClient(m.t, m.queues, n), URL: "http://queues"}
}

func (m *mesh) topicClient(n *leaseholdtest.Node) *pubsub.Client {
	return &pubsub.Client{HTTP: httpClient(m.t, m.topics, n), URL: "http://topics"}
}

func (m *mesh) serveQueues(n *leaseholdtest.Node) func(context.Context) error {
	cfg := n.LookupConfig()
	cfg.Namespace = m.topics.Namespace()
	l, err := lookup.Open(m.t.Context(), cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	as := n.MovingConfig()
	s, err := queue.Join(m.t.Context(), as, queue.Config{Room: 50, Watch: map[string]*lookup.Lookup{"topics": l}})
	if err != nil {
		m.t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) {
		_ = s.Close(ctx)
		_ = l.Close()
	})
	n.Serve(s.Handler())
	return s.Close
}

func (m *mesh) serveTopics(n *leaseholdtest.Node) func(context.Context) error {
	as := n.MovingConfig()
	s, err := pubsub.Join(m.t.Context(), as, m.queueClient(n))
	if err != nil {
		m.t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = s.Close(ctx) })
	n.Serve(s.Handler())
	return s.Close
}

// A tenure is a time in which a subscriber believed that it subscribed; it ends when it
// learns that it may have missed something.
type tenure struct{ from, to time.Time }

// A subscriber is a device, and what it knows.
type subscriber struct {
	name, topic string
	queues      *queue.Client
	topics      *pubsub.Client
	received    map[string]bool
	tenures     []tenure
}

// live subscribes, receives, and subscribes again when it learns of a loss, until the
// context ends; and at last until there are no messages.
func (s *subscriber) live(ctx context.Context, t *testing.T, random *rand.Rand) {
	var at queue.Place
	subscribed := false
	for last := false; ; {
		if !subscribed && ctx.Err() == nil && at.Epoch != "" { // it has opened its queue
			subscribed = s.subscribe(ctx)
		}
		if random.IntN(20) == 0 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Second) // offline
		}
		waiting, wait := ctx, 5*time.Second
		if at.Epoch == "" {
			wait = 0
		}
		if ctx.Err() != nil {
			waiting, wait, last = context.WithoutCancel(ctx), 0, true
		}
		b, err := s.queues.Receive(waiting, s.name, at, wait)
		if err != nil {
			if last {
				t.Errorf("%s: at the end: %v", s.name, err)
				return
			}
			time.Sleep(100 * time.Millisecond)
			continue
		}
		lost := b.Lost
		for _, m := range b.Messages {
			lost = lost || m.Missed || m.Lost != nil
			s.received[string(m.Body)] = true
		}
		if lost && subscribed {
			s.tenures[len(s.tenures)-1].to = time.Now()
			subscribed = false
		}
		at = b.Next(at)
		if last && len(b.Messages) == 0 {
			return
		}
	}
}

// subscribe says first what it depends on, and then subscribes.
func (s *subscriber) subscribe(ctx context.Context) bool {
	if s.queues.SetInterests(ctx, s.name, []queue.Interest{{Service: "topics", Name: s.topic}}) != nil ||
		s.topics.Subscribe(ctx, s.topic, s.name, time.Hour) != nil {
		return false
	}
	s.tenures = append(s.tenures, tenure{from: time.Now()})
	return true
}

// believed reports whether the subscriber believed to be subscribed at a time, and has
// learned since that it may have missed something.
func (s *subscriber) believed(at time.Time) (subscribed, told bool) {
	for _, d := range s.tenures {
		if !at.Before(d.from) && (d.to.IsZero() || !at.After(d.to)) {
			return true, !d.to.IsZero()
		}
	}
	return false, false
}

// publish publishes until the context ends, and returns what was acknowledged, and when
// it began.
func publish(ctx context.Context, c *pubsub.Client, topic string, random *rand.Rand, from int) map[string]time.Time {
	done := make(map[string]time.Time)
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		id, began := fmt.Sprintf("%d.%d", from, i), time.Now()
		if _, err := c.Publish(ctx, topic, id); err == nil {
			done[fmt.Sprintf("%q", id)] = began
		}
	}
	return done
}

// TestSubscribersGetItOrKnow: while servers of both services are killed, paused, cut off
// and restarted, each subscriber gets each message whose publication was acknowledged, or
// learns that it missed some.
func TestSubscribersGetItOrKnow(t *testing.T) {
	const runs = 20
	acknowledged, gone := 0, 0
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Namespace: "queues"}, func(t *testing.T, c *leaseholdtest.Cluster) {
				a, g := play(t, &mesh{t, c, c.In("topics")}, seed)
				acknowledged, gone = acknowledged+a, gone+g
			})
		})
	}
	t.Logf("%d runs: %d copies were due, %d of them were missed, all known", runs, acknowledged, gone)
	if gone == 0 || acknowledged < 20*runs {
		t.Error("that proves little")
	}
}

func play(t *testing.T, m *mesh, seed uint64) (due, gone int) {
	random := rand.New(rand.NewPCG(seed, 99))
	nemeses := []*leaseholdtest.Nemesis{{Random: random, Start: m.serveQueues}, {Random: random, Start: m.serveTopics}}
	nemeses[0].Begin(m.queues, "q1", "q2")
	nemeses[1].Begin(m.topics, "t1", "t2")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	receiving, done := context.WithCancel(t.Context())
	defer done()
	var publishers, receivers sync.WaitGroup
	var subscribers []*subscriber
	for i := range 3 {
		n := m.queues.Node(fmt.Sprint("device", i))
		s := &subscriber{
			name: n.Name(), topic: fmt.Sprint("topic", i%2), queues: m.queueClient(n), topics: m.topicClient(n), received: make(map[string]bool),
		}
		subscribers = append(subscribers, s)
		receivers.Go(func() { s.live(receiving, t, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	published := make([]map[string]time.Time, 2)
	for i := range published {
		client := m.topicClient(m.topics.Node(fmt.Sprint("publisher", i)))
		publishers.Go(func() {
			published[i] = publish(ctx, client, fmt.Sprint("topic", i), rand.New(rand.NewPCG(seed, uint64(50+i))), i)
		})
	}
	for range 3 {
		m.queues.Advance(5 * time.Second)
		t.Log(nemeses[random.IntN(2)].Hurt())
	}
	m.queues.Settle()
	m.topics.Settle()
	stop()
	publishers.Wait()
	done()
	receivers.Wait()
	for i, s := range subscribers {
		for id, began := range published[i%2] {
			subscribed, told := s.believed(began)
			if !subscribed {
				continue
			}
			due++
			if s.received[id] {
				continue
			}
			gone++
			if !told {
				t.Errorf("%s has not received %s, which was published at %v, and does not know: %v", s.name, id, began, s.tenures)
			}
		}
	}
	return due, gone
}
