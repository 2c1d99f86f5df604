package pubsub_test

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
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
)

// room is the maximum number of messages in a queue.
const room = 50

// A mesh is both services on one cluster.
type mesh struct {
	t              *testing.T
	queues, topics *leaseholdtest.Cluster
}

func (m *mesh) queueClient(n *leaseholdtest.Node) *queue.Client {
	return &queue.Client{Client: meshtest.Client(m.t, m.queues, n)}
}

func (m *mesh) topicClient(n *leaseholdtest.Node) *pubsub.Client {
	return &pubsub.Client{Client: meshtest.Client(m.t, m.topics, n)}
}

func (m *mesh) serveQueues(n *leaseholdtest.Node) func(context.Context) error {
	watch := map[string]*lookup.Lookup{"topics": meshtest.Lookup(m.t, m.topics, n)}
	s, err := queue.Join(m.t.Context(), n.MovingConfig(), queue.Config{Room: room, Watch: watch})
	return meshtest.Serve(m.t, n, s, err)
}

func (m *mesh) serveTopics(n *leaseholdtest.Node) func(context.Context) error {
	s, err := pubsub.Join(m.t.Context(), n.MovingConfig(), m.queueClient(n))
	return meshtest.Serve(m.t, n, s, err)
}

// TestSubscribersGetItOrKnow: while servers of both services are killed, paused, partitioned and
// restarted, each subscriber receives each acknowledged message, or a report of a loss.
func TestSubscribersGetItOrKnow(t *testing.T) {
	runs := meshtest.Runs(20)
	var total promise.Tally
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Namespace: "queues"}, func(t *testing.T, c *leaseholdtest.Cluster) {
				total.Add(play(t, &mesh{t, c, c.In("topics")}, seed))
			})
		})
	}
	t.Logf("%d runs: %d copies were due, %d of them were missed, all reported", runs, total.Due, total.Lost)
	if total.Lost == 0 || total.Due < 20*runs {
		t.Error("too few requests for a valid test")
	}
}

func play(t *testing.T, m *mesh, seed uint64) (tally promise.Tally) {
	random := rand.New(rand.NewPCG(seed, 99))
	nemeses := []*leaseholdtest.Nemesis{{Random: random, Start: m.serveQueues}, {Random: random, Start: m.serveTopics}}
	nemeses[0].Begin(m.queues, "q1", "q2")
	nemeses[1].Begin(m.topics, "t1", "t2")
	publishing, stop := context.WithCancel(t.Context())
	defer stop()
	receiving, done := context.WithCancel(t.Context())
	defer done()
	var publishers sync.WaitGroup
	var receivers errgroup.Group
	var subscribers []*promise.Device
	topic := func(i int) string { return fmt.Sprint("topic", i%2) }
	for i := range 3 {
		n := m.queues.Node(fmt.Sprint("device", i))
		s := promise.NewSubscriber(n.Name(), topic(i), m.queueClient(n), m.topicClient(n))
		subscribers = append(subscribers, s)
		receivers.Go(func() error { return s.Receive(receiving, rand.New(rand.NewPCG(seed, uint64(i))), 20*time.Second) })
	}
	published := make([]promise.Acknowledged, 2)
	for i := range published {
		n := m.topics.Node(fmt.Sprint("publisher", i))
		api, random := m.topicClient(n), rand.New(rand.NewPCG(seed, uint64(50+i)))
		publishers.Go(func() { published[i] = promise.Publish(publishing, n.Name(), api, topic(i), random) })
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
	if err := receivers.Wait(); err != nil {
		t.Error(err)
	}
	for i, s := range subscribers {
		checked, err := s.CheckTopic(published[i%2])
		if err != nil {
			t.Error(err)
		}
		tally.Add(checked)
	}
	return tally
}
