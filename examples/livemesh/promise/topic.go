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

// A tenure is a time in which a subscriber believed that it subscribed; it ends when it
// learns that it may have missed something.
type tenure struct{ from, to time.Time }

// NewSubscriber returns a subscriber that is named like its queue.
func NewSubscriber(name, topic string, queues *queue.Client, topics *pubsub.Client) *Subscriber {
	return &Subscriber{name: name, topic: topic, queues: queues, topics: topics, received: make(map[string]bool)}
}

// Live subscribes, receives, and subscribes again when it learns of a loss, until the
// context ends; and at last until there are no messages. Now and then it is offline, for
// up to a time.
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

// subscribe sets the interest first, and then subscribes.
func (s *Subscriber) subscribe(ctx context.Context) bool {
	if s.queues.SetInterests(ctx, s.name, []queue.Interest{{Service: "topics", Name: s.topic}}) != nil ||
		s.topics.Subscribe(ctx, s.topic, s.name, time.Hour) != nil {
		return false
	}
	s.tenures = append(s.tenures, tenure{from: time.Now()})
	return true
}

// believed reports whether the subscriber believed to be subscribed at a time, and has
// learned since that it may have missed something.
func (s *Subscriber) believed(at time.Time) (subscribed, ended bool) {
	for _, d := range s.tenures {
		if !at.Before(d.from) && (d.to.IsZero() || !at.After(d.to)) {
			return true, !d.to.IsZero()
		}
	}
	return false, false
}

// Published are messages that were acknowledged, and when their publication began.
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

// Check compares messages that were acknowledged with those that were received. They are due
// if the subscription lasted when their publication began.
func (s *Subscriber) Check(published Published) (Tally, error) {
	return compare(s.name, published, s.received, s.believed)
}

// A Tally is what became of messages that were acknowledged. Silent losses come with an
// error.
type Tally struct {
	Due    int `json:"acknowledged"`
	Lost   int `json:"lost_and_known"` // the device or subscriber has learned of a loss
	Silent int `json:"lost_silently"`
}

// Add adds up.
func (t *Tally) Add(more Tally) {
	t.Due, t.Lost, t.Silent = t.Due+more.Due, t.Lost+more.Lost, t.Silent+more.Silent
}

// String says how many were lost.
func (t Tally) String() string {
	if t.Lost == 0 {
		return "and none was lost"
	}
	return fmt.Sprintf("%d of them lost, and who lost them knows; none silently", t.Lost)
}

// compare compares messages that were acknowledged with those that were received: of those
// that were due, each was received or is known to be lost.
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
			broken = append(broken, fmt.Errorf("%s has not received %s, and does not know: it was acknowledged as %v", name, id, message))
		}
	}
	return t, errors.Join(broken...)
}

// quoted is a message as it is received: as JSON.
func quoted(id string) string { return fmt.Sprintf("%q", id) }
