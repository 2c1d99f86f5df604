package promise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// A Subscriber is a device that subscribes to a topic.
type Subscriber struct {
	name, topic string
	queues      *queue.Client
	topics      *pubsub.Client
	received    map[string]bool
	tenures     []tenure
}

// A tenure is a period in which a subscriber was subscribed; it ends when a loss is reported.
type tenure struct{ from, to time.Time }

// NewSubscriber returns a subscriber with the name of its queue.
func NewSubscriber(name, topic string, queues *queue.Client, topics *pubsub.Client) *Subscriber {
	return &Subscriber{name: name, topic: topic, queues: queues, topics: topics, received: make(map[string]bool)}
}

// Live subscribes, receives, and subscribes again when a loss is reported, until the context
// ends, and then until the queue is empty. At random times it is offline, for up to a time.
func (s *Subscriber) Live(ctx context.Context, random *rand.Rand, offline time.Duration) error {
	opened, subscribed := false, false
	return follow(ctx, s.name, s.queues, func() {
		if !subscribed && opened && ctx.Err() == nil {
			subscribed = s.subscribe(ctx)
		}
		if random.IntN(20) == 0 {
			pause(ctx, time.Duration(random.Int64N(int64(offline))))
		}
	}, func(b queue.Batch) {
		opened = true
		lost := b.Lost
		for _, m := range b.Messages {
			lost = lost || m.Missed || m.Lost != nil
			s.received[string(m.Body)] = true
		}
		if lost && subscribed {
			s.tenures[len(s.tenures)-1].to = time.Now()
			subscribed = false
		}
	})
}

// subscribe sets the interest, and then subscribes, so that no loss goes unnoticed.
func (s *Subscriber) subscribe(ctx context.Context) bool {
	if s.queues.SetInterests(ctx, s.name, []queue.Interest{{Service: "topics", Name: s.topic}}) != nil ||
		s.topics.Subscribe(ctx, s.topic, s.name, time.Hour) != nil {
		return false
	}
	s.tenures = append(s.tenures, tenure{from: time.Now()})
	return true
}

// subscribedAt reports whether the subscriber was subscribed at a time, and whether a loss was
// reported since.
func (s *Subscriber) subscribedAt(at time.Time) (subscribed, ended bool) {
	for _, d := range s.tenures {
		if !at.Before(d.from) && (d.to.IsZero() || !at.After(d.to)) {
			return true, !d.to.IsZero()
		}
	}
	return false, false
}

// Published are acknowledged messages, with the start of their publication.
type Published map[string]time.Time

// Publish publishes until the context ends. Publishers have different names.
func Publish(ctx context.Context, from string, topics *pubsub.Client, topic string, random *rand.Rand) Published {
	done := make(Published)
	for i := 0; pause(ctx, time.Duration(random.IntN(1000))*time.Millisecond); i++ {
		id, began := fmt.Sprintf("%s.%d", from, i), time.Now()
		if _, err := topics.Publish(ctx, topic, id); err == nil {
			done[quoted(id)] = began
		}
	}
	return done
}

// Check compares acknowledged messages with received ones. A message is due if the subscription
// was active when its publication began.
func (s *Subscriber) Check(published Published) (Tally, error) {
	return compare(s.name, published, s.received, s.subscribedAt)
}

// A Tally is the outcome of acknowledged messages. Silent losses are also errors.
type Tally struct {
	Due    int `json:"acknowledged"`
	Lost   int `json:"lost_and_known"` // a loss was reported
	Silent int `json:"lost_silently"`
}

// Add adds another tally.
func (t *Tally) Add(more Tally) {
	t.Due, t.Lost, t.Silent = t.Due+more.Due, t.Lost+more.Lost, t.Silent+more.Silent
}

// String returns the number of losses as text.
func (t Tally) String() string {
	if t.Lost == 0 {
		return "and none was lost"
	}
	return fmt.Sprintf("%d of them lost, all reported to the receiver", t.Lost)
}

// compare compares acknowledged messages with received ones: each due message must be received,
// or its loss reported.
func compare[M any](name string, acknowledged map[string]M, received map[string]bool, status func(M) (due, known bool)) (Tally, error) {
	var t Tally
	var broken []error
	for id, message := range acknowledged {
		due, known := status(message)
		if !due {
			continue
		}
		t.Due++
		switch {
		case received[id]:
		case known:
			t.Lost++
		default:
			t.Silent++
			broken = append(broken, fmt.Errorf("%s did not receive %s, and no loss was reported; acknowledged as %v", name, id, message))
		}
	}
	return t, errors.Join(broken...)
}

// quoted returns a message as JSON, as it is received.
func quoted(id string) string { return fmt.Sprintf("%q", id) }
