// Package promise checks the guarantee of queues and topics for each message: no message is lost
// silently. It is used by tests on virtual time and with real processes.
package promise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Device receives from a queue, which has its name. It may subscribe to a topic. It is for one
// goroutine at a time.
type Device struct {
	name, topic string
	queues      *queue.Client
	topics      *pubsub.Client

	opened   time.Time // its first response: there is no guarantee before
	at       queue.Place
	received map[string]bool
	lost     []time.Time // when losses of messages in the queue were reported
	missed   uint64      // the last mark in the current epoch
	tenures  []tenure
}

// A tenure is a period in which a device was subscribed; it ends when a loss is reported.
type tenure struct{ from, to time.Time }

// NewDevice returns a device that subscribes to no topic.
func NewDevice(name string, queues *queue.Client) *Device {
	return &Device{name: name, queues: queues, received: make(map[string]bool)}
}

// NewSubscriber returns a device that subscribes to a topic.
func NewSubscriber(name, topic string, queues *queue.Client, topics *pubsub.Client) *Device {
	d := NewDevice(name, queues)
	d.topic, d.topics = topic, topics
	return d
}

// maxFailures bounds failed requests after the last fault.
const maxFailures = 5

// Receive receives messages until the context ends, and then until the queue is empty. It
// subscribes, and does so again when a loss is reported. At random times it is offline, for up to
// a time.
func (d *Device) Receive(ctx context.Context, random *rand.Rand, offline time.Duration) error {
	for failures := 0; failures < maxFailures; {
		if !d.opened.IsZero() && random.IntN(15) == 0 {
			proc.Pause(ctx, time.Duration(random.Int64N(int64(offline))))
		}
		last := ctx.Err() != nil
		if !last {
			d.subscribe(ctx)
		}
		b, err := d.ask(ctx, last)
		if err != nil {
			if last {
				failures++
			}
			proc.Pause(context.WithoutCancel(ctx), 100*time.Millisecond)
			continue
		}
		if err := consecutive(b, d.at); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		d.take(b)
		if last && len(b.Messages) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s: no response at the end", d.name)
}

// ask requests messages. The first request opens the queue.
func (d *Device) ask(ctx context.Context, last bool) (queue.Batch, error) {
	wait := 5 * time.Second
	if last {
		ctx = context.WithoutCancel(ctx)
	}
	if last || d.at.Epoch == "" {
		wait = 0
	}
	return d.queues.Receive(ctx, d.name, d.at, wait)
}

// subscribe subscribes unless the device has no topic or is subscribed. It sets the interest
// before, so that no loss goes unnoticed.
func (d *Device) subscribe(ctx context.Context) {
	if d.topics == nil || d.opened.IsZero() || d.tenure() != nil {
		return
	}
	if d.queues.SetInterests(ctx, d.name, []queue.Interest{{Service: "topics", Name: d.topic}}) == nil &&
		d.topics.Subscribe(ctx, d.topic, d.name) == nil {
		d.tenures = append(d.tenures, tenure{from: time.Now()})
	}
}

// tenure returns the current tenure, nil if there is none.
func (d *Device) tenure() *tenure {
	if n := len(d.tenures); n > 0 && d.tenures[n-1].to.IsZero() {
		return &d.tenures[n-1]
	}
	return nil
}

// take records a batch.
func (d *Device) take(b queue.Batch) {
	now, lost := time.Now(), b.Lost
	if d.opened.IsZero() {
		d.opened = now
	}
	d.at = b.Next(d.at)
	if b.Lost {
		d.lost, d.missed = append(d.lost, now), 0
	}
	for _, m := range b.Messages {
		if m.Missed {
			d.lost, d.missed = append(d.lost, now), m.Number
		}
		lost = lost || m.Missed || m.Lost != nil
		d.received[string(m.Body)] = true
	}
	if t := d.tenure(); lost && t != nil {
		t.to = now
	}
}

// consecutive returns an error if a message was skipped: within an epoch the numbers have no
// gaps, except before a mark for missed messages.
func consecutive(b queue.Batch, at queue.Place) error {
	if b.Lost || at.Epoch == "" {
		at = queue.Place{Epoch: b.Epoch}
	}
	if at.Epoch != b.Epoch {
		return fmt.Errorf("epoch %s became %s without a report of a loss", at.Epoch, b.Epoch)
	}
	for _, m := range b.Messages {
		if m.Number <= at.Have || m.Number > at.Have+1 && !m.Missed {
			return fmt.Errorf("message %d comes after %d in epoch %s", m.Number, at.Have, at.Epoch)
		}
		at.Have = m.Number
	}
	return nil
}
