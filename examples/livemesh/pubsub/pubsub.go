package pubsub

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// Bounds on a topic.
const (
	MaxSubscribers = 10_000
	TTL            = time.Hour // of a subscription without a refresh
	fanOut         = 32        // concurrent enqueues of a publication
)

// A topic is the expiry times of subscriptions, by queue. They are wall-clock times: the clocks of
// servers may differ by less than the TTL minus the subscribers' refresh interval. Its map is
// never changed in place, because readers may use it.
type topic map[string]time.Time

// now returns a copy without expired subscriptions.
func (t topic) now() topic {
	now, active := time.Now(), maps.Clone(t)
	maps.DeleteFunc(active, func(_ string, expiry time.Time) bool { return !now.Before(expiry) })
	return active
}

// A Service is one server of topics. It is safe for concurrent use.
type Service struct {
	topics *leasemap.Map[topic]
	queues *queue.Client
}

// Join joins the namespace as an owner. Published messages are enqueued in queues.
func Join(ctx context.Context, as owner.Config, queues *queue.Client) (*Service, error) {
	m, err := leasemap.Join(ctx, as, leasemap.Config[topic]{TTL: TTL})
	if err != nil {
		return nil, err
	}
	return &Service{m, queues}, nil
}

// Close transfers all topics to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error { return s.topics.Close(ctx) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.topics.Owner(), queue.MaxMessage)
	jsonhttp.Handle(mux, "PUT /topics/{name}/subscriptions/{queue}", s.subscribe)
	jsonhttp.Handle(mux, "POST /topics/{name}/subscriptions/{queue}/refresh", s.refresh)
	jsonhttp.Handle(mux, "DELETE /topics/{name}/subscriptions/{queue}", s.unsubscribe)
	jsonhttp.Handle(mux, "POST /topics/{name}/messages", s.publish)
	return mux
}

func (s *Service) subscribe(r *jsonhttp.Request, _ jsonhttp.None) (none jsonhttp.None, err error) {
	if err := jsonhttp.ValidName("subscribe", "a queue", r.PathValue("queue")); err != nil {
		return none, err
	}
	return none, s.change(r, func(t topic, to string) error {
		t[to] = time.Now().Add(TTL)
		if len(t) > MaxSubscribers {
			return leasehold.Errorf("subscribe", leasehold.ErrLimit, r.Name, "the topic has %d subscribers, the maximum", MaxSubscribers)
		}
		return nil
	})
}

// refresh fails if there is no subscription: then the subscriber knows that messages may have been
// missed.
func (s *Service) refresh(r *jsonhttp.Request, _ jsonhttp.None) (none jsonhttp.None, err error) {
	return none, s.change(r, func(t topic, to string) error {
		if _, there := t[to]; !there {
			return leasehold.Errorf("refresh", leasehold.ErrNotFound, r.Name,
				"queue %q does not subscribe: the subscription has expired or was lost, and messages may have been missed; subscribe again", to)
		}
		t[to] = time.Now().Add(TTL)
		return nil
	})
}

func (s *Service) unsubscribe(r *jsonhttp.Request, _ jsonhttp.None) (none jsonhttp.None, err error) {
	return none, s.change(r, func(t topic, to string) error {
		delete(t, to)
		return nil
	})
}

// change changes a copy of a topic, for the queue in the request.
func (s *Service) change(r *jsonhttp.Request, change func(t topic, to string) error) error {
	_, err := s.topics.Update(r.Context(), r.Name, func(t *topic) error {
		next := t.now()
		if next == nil {
			next = make(topic)
		}
		*t = next
		return change(next, r.PathValue("queue"))
	})
	return err
}

// publish enqueues a message for all subscribers, and returns their number. If it fails, some may
// have received it: publish it again.
func (s *Service) publish(r *jsonhttp.Request, message json.RawMessage) (published, error) {
	t, _, err := s.topics.Get(r.Name)
	if err != nil {
		return published{}, err
	}
	var group errgroup.Group
	group.SetLimit(fanOut)
	subscribers := t.now()
	for to := range subscribers {
		group.Go(func() error {
			_, err := s.queues.Enqueue(r.Context(), to, message, true)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return published{}, leasehold.Errorf("publish", leasehold.ErrIndeterminate, r.Name, "not all of the %d subscribers have received it; publish it again: %w", len(subscribers), err)
	}
	return published{len(subscribers)}, nil
}

type published struct {
	Subscribers int `json:"subscribers"`
}

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Subscribe subscribes a queue to a topic until [TTL] has passed. The queue's device must have
// registered the topic as an interest before.
func (c *Client) Subscribe(ctx context.Context, topic, queue string) error {
	return c.Do(ctx, http.MethodPut, subscription(topic, queue), nil)
}

// Refresh extends a subscription. If it fails with [leasehold.ErrNotFound], messages may have
// been missed.
func (c *Client) Refresh(ctx context.Context, topic, queue string) error {
	return c.Do(ctx, http.MethodPost, subscription(topic, queue)+"/refresh", nil)
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, topic, queue string) error {
	return c.Do(ctx, http.MethodDelete, subscription(topic, queue), nil)
}

// Publish sends a message to all subscribers, and returns their number. If it fails, repeat it.
func (c *Client) Publish(ctx context.Context, topic string, message any) (int, error) {
	done, err := jsonhttp.Call[published](ctx, c.Client, http.MethodPost, jsonhttp.Path("topics", topic, "messages"), message)
	return done.Subscribers, err
}

func subscription(topic, queue string) string {
	return jsonhttp.Path("topics", topic, "subscriptions", queue)
}
