package pubsub

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
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
	MaxTTL         = 24 * time.Hour
	fanOut         = 32 // concurrent enqueues of a publication
)

// A topic has its subscribers, with the remaining lifetime of each subscription at the last
// change. Expiry times would not be valid on servers with other clocks.
type topic struct {
	Subscribers map[string]time.Duration `json:"subscribers"` // by queue
	changed     time.Time
}

// MarshalJSON writes the remaining lifetimes.
func (t topic) MarshalJSON() ([]byte, error) {
	type plain topic
	return json.Marshal(plain(t.now(time.Now())))
}

// UnmarshalJSON reads lifetimes that start now.
func (t *topic) UnmarshalJSON(data []byte) error {
	type plain topic
	t.changed = time.Now()
	return json.Unmarshal(data, (*plain)(t))
}

// now returns the topic at a time, without expired subscriptions.
func (t topic) now(at time.Time) topic {
	passed := at.Sub(t.changed)
	left := make(map[string]time.Duration, len(t.Subscribers))
	for name, ttl := range t.Subscribers {
		if ttl > passed {
			left[name] = ttl - passed
		}
	}
	return topic{left, at}
}

func (t topic) last() time.Duration {
	return slices.Max(slices.Collect(maps.Values(t.Subscribers)))
}

// A Service is one server of topics. It is safe for concurrent use.
type Service struct {
	topics *leasemap.Map[topic]
	queues *queue.Client
}

// Join joins the namespace as an owner. Published messages are enqueued in queues.
func Join(ctx context.Context, as owner.Config, queues *queue.Client) (*Service, error) {
	m, err := leasemap.Join(ctx, as, leasemap.Config[topic]{TTL: MaxTTL})
	if err != nil {
		return nil, err
	}
	return &Service{m, queues}, nil
}

// Close transfers all topics to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error { return s.topics.Close(ctx) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.topics.Owner())
	mux.Handle("PUT /topics/{name}/subscriptions/{queue}", s.subscribe)
	mux.Handle("POST /topics/{name}/subscriptions/{queue}/refresh", s.refresh)
	mux.Handle("DELETE /topics/{name}/subscriptions/{queue}", s.unsubscribe)
	mux.Handle("POST /topics/{name}/messages", s.publish)
	return mux
}

func (s *Service) subscribe(r *jsonhttp.Request) (any, error) {
	if err := jsonhttp.ValidName("subscribe", "a queue", r.PathValue("queue")); err != nil {
		return nil, err
	}
	return nil, s.extend(r, func(t *topic, to string) error {
		if _, there := t.Subscribers[to]; !there && len(t.Subscribers) >= MaxSubscribers {
			return leasehold.Errorf("subscribe", leasehold.ErrLimit, r.Name, "the topic has %d subscribers, the maximum", MaxSubscribers)
		}
		return nil
	})
}

// refresh fails with [leasehold.ErrNotFound] if there is no subscription: messages may have been
// missed.
func (s *Service) refresh(r *jsonhttp.Request) (any, error) {
	return nil, s.extend(r, func(t *topic, to string) error {
		if _, there := t.Subscribers[to]; !there {
			return jsonhttp.WithStatus(http.StatusGone, leasehold.Errorf("refresh", leasehold.ErrNotFound, r.Name,
				"queue %q does not subscribe: the subscription has expired or was lost, and messages may have been missed; subscribe again", to))
		}
		return nil
	})
}

// extend sets the lifetime of a subscription, if it is allowed.
func (s *Service) extend(r *jsonhttp.Request, allow func(t *topic, to string) error) error {
	const usual = "1h"
	text := cmp.Or(r.URL.Query().Get("ttl"), usual)
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl <= 0 || ttl > MaxTTL {
		return leasehold.Errorf("subscribe", leasehold.ErrInvalid, r.Name, "ttl is %q, want a duration of up to %v, for example %s", text, MaxTTL, usual)
	}
	return s.change(r, func(t *topic) error {
		to := r.PathValue("queue")
		if err := allow(t, to); err != nil {
			return err
		}
		t.Subscribers[to] = ttl
		return nil
	})
}

func (s *Service) unsubscribe(r *jsonhttp.Request) (any, error) {
	return nil, s.change(r, func(t *topic) error {
		delete(t.Subscribers, r.PathValue("queue"))
		return nil
	})
}

// change changes a copy of a topic, since readers may use the current one.
func (s *Service) change(r *jsonhttp.Request, change func(*topic) error) error {
	_, err := s.topics.Do(r.Context(), r.Name, func(e *leasemap.Entry[topic]) error {
		next := e.Value.now(time.Now())
		if err := change(&next); err != nil {
			return err
		}
		e.Value = next
		if len(next.Subscribers) == 0 {
			e.Delete()
			return nil
		}
		e.Expire(next.last())
		return nil
	})
	return err
}

// publish enqueues a message for all subscribers, and returns their number. If it fails, some may
// have received it: publish it again.
func (s *Service) publish(r *jsonhttp.Request) (any, error) {
	message, err := queue.ReadMessage("publish", r)
	if err != nil {
		return nil, err
	}
	t, _, err := s.topics.Get(r.Name)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(fanOut)
	subscribers := t.now(time.Now()).Subscribers
	for to := range subscribers {
		group.Go(func() error {
			_, err := s.queues.Enqueue(r.Context(), to, message, true)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, leasehold.Errorf("publish", leasehold.ErrIndeterminate, r.Name, "not all of the %d subscribers have received it; publish it again: %w", len(subscribers), err)
	}
	return published{len(subscribers)}, nil
}

type published struct {
	Subscribers int `json:"subscribers"`
}

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Subscribe subscribes a queue to a topic for a time. The queue's device must have registered the
// topic as an interest before.
func (c *Client) Subscribe(ctx context.Context, topic, queue string, ttl time.Duration) error {
	return c.Do(ctx, http.MethodPut, subscription(topic, queue)+lasting(ttl), nil, nil)
}

// Refresh extends a subscription. If it fails with [leasehold.ErrNotFound], messages may have
// been missed.
func (c *Client) Refresh(ctx context.Context, topic, queue string, ttl time.Duration) error {
	return c.Do(ctx, http.MethodPost, subscription(topic, queue)+"/refresh"+lasting(ttl), nil, nil)
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, topic, queue string) error {
	return c.Do(ctx, http.MethodDelete, subscription(topic, queue), nil, nil)
}

// Publish sends a message to all subscribers, and returns their number. If it fails, repeat it.
func (c *Client) Publish(ctx context.Context, topic string, message any) (int, error) {
	done, err := jsonhttp.Call[published](ctx, c.Client, http.MethodPost, jsonhttp.Path("topics", topic, "messages"), message)
	return done.Subscribers, err
}

func subscription(topic, queue string) string {
	return jsonhttp.Path("topics", topic, "subscriptions", queue)
}

func lasting(ttl time.Duration) string { return jsonhttp.Query("ttl", ttl.String()) }
