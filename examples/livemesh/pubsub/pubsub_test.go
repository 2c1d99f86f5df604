package pubsub_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// alone runs a test with one server of each service.
func alone(t *testing.T, test func(t *testing.T, m *mesh, queues *queue.Client, topics *pubsub.Client)) {
	leaseholdtest.Run(t, leaseholdtest.Config{Namespace: "queues"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		m := &mesh{t, c, c.In("topics")}
		m.serveQueues(m.queues.Node("q1"))
		m.queues.Settle()
		m.serveTopics(m.topics.Node("t1"))
		m.topics.Settle()
		n := m.queues.Node("caller")
		test(t, m, m.queueClient(n), m.topicClient(n))
	})
}

// received returns the messages in a queue.
func received(t *testing.T, queues *queue.Client, name string) (bodies []string) {
	t.Helper()
	b, err := queues.Receive(t.Context(), name, queue.Place{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range b.Messages {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

func TestPublish(t *testing.T) {
	alone(t, func(t *testing.T, m *mesh, queues *queue.Client, topics *pubsub.Client) {
		ctx := t.Context()
		publish := func(want int) {
			t.Helper()
			if n, err := topics.Publish(ctx, "news", "hello"); err != nil || n != want {
				t.Errorf("%d subscribers, want %d: %v", n, want, err)
			}
		}
		publish(0)
		for _, name := range []string{"home", "work"} {
			if err := topics.Subscribe(ctx, "news", name); err != nil {
				t.Fatal(err)
			}
		}
		publish(2)
		if err := topics.Subscribe(ctx, "news", "home"); err != nil { // idempotent
			t.Fatal(err)
		}
		publish(2)
		if err := topics.Unsubscribe(ctx, "news", "work"); err != nil {
			t.Fatal(err)
		}
		publish(1)
		if home, work := received(t, queues, "home"), received(t, queues, "work"); len(home) != 3 || len(work) != 2 || home[0] != `"hello"` {
			t.Errorf("%v and %v", home, work)
		}
	})
}

// TestSubscriptionsExpire: a subscription expires after the TTL, also if the topic was transferred
// meanwhile. Refreshing an expired one fails.
func TestSubscriptionsExpire(t *testing.T) {
	alone(t, func(t *testing.T, m *mesh, _ *queue.Client, topics *pubsub.Client) {
		ctx := t.Context()
		for _, name := range []string{"expired", "refreshed"} {
			if err := topics.Subscribe(ctx, "news", name); err != nil {
				t.Fatal(err)
			}
		}
		m.topics.Advance(pubsub.TTL / 2)
		if err := topics.Refresh(ctx, "news", "refreshed"); err != nil {
			t.Error(err)
		}
		m.serveTopics(m.topics.Node("t2"))
		m.topics.Settle()
		m.topics.Move(leasehold.All, "t2")
		m.topics.Advance(pubsub.TTL / 2)
		if n, err := topics.Publish(ctx, "news", 1); err != nil || n != 1 {
			t.Errorf("%d subscribers are left: %v", n, err)
		}
		if err := topics.Refresh(ctx, "news", "expired"); !errors.Is(err, leasehold.ErrNotFound) {
			t.Errorf("refreshing an expired one: %v", err)
		}
		m.topics.Advance(pubsub.TTL)
		if n, err := topics.Publish(ctx, "news", 1); err != nil || n != 0 {
			t.Errorf("%d subscribers are left: %v", n, err)
		}
	})
}

// TestFullQueue: a subscriber with a full queue receives a mark for missed messages, and does not
// block publishing.
func TestFullQueue(t *testing.T) {
	alone(t, func(t *testing.T, _ *mesh, queues *queue.Client, topics *pubsub.Client) {
		if err := topics.Subscribe(t.Context(), "news", "home"); err != nil {
			t.Fatal(err)
		}
		for i := range room + 3 {
			if _, err := topics.Publish(t.Context(), "news", i); err != nil {
				t.Fatal(err)
			}
		}
		b, err := queues.Receive(t.Context(), "home", queue.Place{}, 0)
		if err != nil || len(b.Messages) != room+1 || !b.Messages[room].Missed {
			t.Errorf("%d messages, %v", len(b.Messages), err)
		}
	})
}

// TestQueuesAway: a publication that does not reach all queues is not acknowledged.
func TestQueuesAway(t *testing.T) {
	alone(t, func(t *testing.T, m *mesh, _ *queue.Client, topics *pubsub.Client) {
		if err := topics.Subscribe(t.Context(), "news", "home"); err != nil {
			t.Fatal(err)
		}
		m.queues.Node("q1").Kill()
		if n, err := topics.Publish(t.Context(), "news", 1); !errors.Is(err, leasehold.ErrIndeterminate) {
			t.Errorf("acknowledged by %d subscribers: %v", n, err)
		}
	})
}

// TestStatuses: every kind of invalid input has its status.
func TestStatuses(t *testing.T) {
	alone(t, func(t *testing.T, _ *mesh, _ *queue.Client, topics *pubsub.Client) {
		long := `"` + strings.Repeat("x", queue.MaxMessage) + `"`
		meshtest.Check(t, topics.HTTP, topics.URL+"/topics/news/", []meshtest.Case{
			{What: "not JSON", Method: "POST", Path: "messages", Body: "{", Status: 400},
			{What: "too long", Method: "POST", Path: "messages", Body: long, Status: 413},
			{What: "a queue that has no name", Method: "PUT", Path: "subscriptions/%ff", Status: 400, Has: "a queue has a name"},
			{What: "a long name", Method: "PUT", Path: "subscriptions/" + strings.Repeat("n", jsonhttp.MaxName+1), Status: 400},
			{What: "no subscription", Method: "POST", Path: "subscriptions/home/refresh", Status: 404, Has: "subscribe again"},
			{What: "nothing to end", Method: "DELETE", Path: "subscriptions/home", Status: 204},
		})
	})
}
