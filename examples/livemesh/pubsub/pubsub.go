package pubsub

import (
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
	fanOut         = 32 // enqueued at a time by one publication
)

// A topic has its subscribers, and for how much longer each subscription lasts: until when
// cannot be said where clocks differ, so that it is counted from the last change.
type topic struct {
	Subscribers map[string]time.Duration `json:"subscribers"` // by queue
	changed     time.Time
}

// MarshalJSON writes what is left of each subscription.
func (t topic) MarshalJSON() ([]byte, error) {
	type plain topic
	return json.Marshal(plain(t.now(time.Now())))
}

// UnmarshalJSON counts from now on.
func (t *topic) UnmarshalJSON(data []byte) error {
	type plain topic
	t.changed = time.Now()
	return json.Unmarshal(data, (*plain)(t))
}

// now is the topic as it is at a time: without what has expired.
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

// last is when the last subscription expires.
func (t topic) last() time.Duration {
	return slices.Max(slices.Collect(maps.Values(t.Subscribers)))
}

// A Service is one server of topics.
type Service struct {
	topics *leasemap.Map[topic]
	queues *queue.Client
}

// Join joins the namespace as one of its servers. What is published goes to queues.
func Join(ctx context.Context, as owner.Config, queues *queue.Client) (*Service, error) {
	m, err := leasemap.Join(ctx, as, leasemap.Config[topic]{TTL: MaxTTL})
	if err != nil {
		return nil, err
	}
	return &Service{m, queues}, nil
}

// Close hands all topics over to other servers. They are served until they have gone.
func (s *Service) Close(ctx context.Context) error { return s.topics.Close(ctx) }

// Subscribe has messages of a topic go to a queue for some time.
func (s *Service) Subscribe(ctx context.Context, name, to string, ttl time.Duration) error {
	if err := jsonhttp.ValidName("subscribe", "a queue", to); err != nil {
		return err
	}
	return s.change(ctx, name, func(t *topic) error {
		t.Subscribers[to] = ttl
		if len(t.Subscribers) > MaxSubscribers {
			return leasehold.Errorf("subscribe", leasehold.Limit, name, "the topic has %d subscribers already", MaxSubscribers)
		}
		return nil
	})
}

// Refresh lets a subscription last for some time from now on. It fails with
// [leasehold.NotFound] if there is none: then messages may have been missed.
func (s *Service) Refresh(ctx context.Context, name, to string, ttl time.Duration) error {
	return s.change(ctx, name, func(t *topic) error {
		if _, ok := t.Subscribers[to]; !ok {
			return jsonhttp.WithStatus(http.StatusGone, leasehold.Errorf("refresh", leasehold.NotFound, name,
				"queue %q does not subscribe: the subscription has expired or was lost, and messages may have been missed; subscribe again", to))
		}
		t.Subscribers[to] = ttl
		return nil
	})
}

// Unsubscribe ends a subscription, if there is one.
func (s *Service) Unsubscribe(ctx context.Context, name, to string) error {
	return s.change(ctx, name, func(t *topic) error {
		delete(t.Subscribers, to)
		return nil
	})
}

// change changes a copy of a topic: what is there may be being read.
func (s *Service) change(ctx context.Context, name string, change func(*topic) error) error {
	_, err := s.topics.Do(ctx, name, func(e *leasemap.Entry[topic]) error {
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

// Publish puts a message into the queues of all subscribers, and returns how many there
// are. If it fails, some may have it, and it is to be published again.
func (s *Service) Publish(ctx context.Context, name string, message json.RawMessage) (int, error) {
	if err := queue.ValidMessage("publish", name, message); err != nil {
		return 0, err
	}
	t, _, err := s.topics.Get(name)
	if err != nil {
		return 0, err
	}
	var group errgroup.Group
	group.SetLimit(fanOut)
	subscribers := t.now(time.Now()).Subscribers
	for to := range subscribers {
		group.Go(func() error {
			_, err := s.queues.Enqueue(ctx, to, message, true)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, leasehold.Errorf("publish", leasehold.Unavailable, name, "not all of the %d subscribers have it; publish it again: %w", len(subscribers), err)
	}
	return len(subscribers), nil
}
