package promise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// Acknowledged are the acknowledged messages of a sender, as they are received.
type Acknowledged map[string]sending

// A sending is when a message was sent and acknowledged, and its receipt if it was enqueued.
type sending struct {
	began, acknowledged time.Time
	receipt             queue.Receipt
}

// Enqueue enqueues messages for a device until the context ends. Senders have different names.
func Enqueue(ctx context.Context, from string, queues *queue.Client, device string, random *rand.Rand) Acknowledged {
	return send(ctx, from, random, func(id string) (queue.Receipt, error) {
		return queues.Enqueue(ctx, device, id, random.IntN(2) == 0)
	})
}

// Publish publishes messages until the context ends. Publishers have different names.
func Publish(ctx context.Context, from string, topics *pubsub.Client, topic string, random *rand.Rand) Acknowledged {
	return send(ctx, from, random, func(id string) (none queue.Receipt, err error) {
		_, err = topics.Publish(ctx, topic, id)
		return none, err
	})
}

func send(ctx context.Context, from string, random *rand.Rand, one func(id string) (queue.Receipt, error)) Acknowledged {
	done := make(Acknowledged)
	for i := 0; proc.Pause(ctx, time.Duration(random.IntN(1000))*time.Millisecond); i++ {
		id, began := fmt.Sprintf("%s.%d", from, i), time.Now()
		if receipt, err := one(id); err == nil {
			done[fmt.Sprintf("%q", id)] = sending{began, time.Now(), receipt}
		}
	}
	return done
}

// Check compares messages that were enqueued for the device with received ones. There is no
// guarantee for messages from before the device opened its queue.
func (d *Device) Check(enqueued Acknowledged) (Tally, error) {
	return d.compare(enqueued, func(s sending) (due, known bool) {
		return !s.acknowledged.Before(d.opened), d.lossReported(s)
	})
}

// lossReported reports whether the loss of a message was reported to the device. For a message
// in the final epoch of the queue, only a mark reports it.
func (d *Device) lossReported(s sending) bool {
	if s.receipt.Epoch == d.at.Epoch {
		return s.receipt.Number <= d.missed
	}
	return slices.ContainsFunc(d.lost, func(when time.Time) bool { return !when.Before(s.acknowledged) })
}

// CheckTopic compares messages that were published with received ones. A message is due if the
// subscription was active when its publication began.
func (d *Device) CheckTopic(published Acknowledged) (Tally, error) {
	return d.compare(published, func(s sending) (due, known bool) {
		for _, t := range d.tenures {
			if !s.began.Before(t.from) && (t.to.IsZero() || !s.began.After(t.to)) {
				return true, !t.to.IsZero()
			}
		}
		return false, false
	})
}

// compare compares acknowledged messages with received ones: each due message must be received,
// or its loss reported.
func (d *Device) compare(acknowledged Acknowledged, status func(sending) (due, known bool)) (t Tally, err error) {
	for id, s := range acknowledged {
		due, known := status(s)
		if !due {
			continue
		}
		t.Due++
		switch {
		case d.received[id]:
		case known:
			t.Lost++
		default:
			t.Silent++
			err = errors.Join(err, fmt.Errorf("%s did not receive %s, and no loss was reported; acknowledged as %v", d.name, id, s))
		}
	}
	return t, err
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
