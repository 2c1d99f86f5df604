// Package promise checks the guarantee of queues and topics for each message: no message is lost
// silently. It is used by tests on virtual time and with real processes.
package promise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// A Device receives from a queue. Senders enqueue messages for it.
type Device struct {
	name   string
	queues *queue.Client

	mu       sync.Mutex
	opened   time.Time // its first response: there is no guarantee before
	received map[string]bool
	lost     []time.Time // when losses were reported
	sent     map[string]sending
	at       queue.Place
	missed   uint64 // the last mark in the current epoch
}

// A sending is an acknowledged message.
type sending struct {
	at      time.Time
	receipt queue.Receipt
}

// NewDevice returns a device with the name of its queue.
func NewDevice(name string, queues *queue.Client) *Device {
	return &Device{name: name, queues: queues, received: make(map[string]bool), sent: make(map[string]sending)}
}

// Receive receives messages until the context ends, and then until the queue is empty. At random
// times it is offline, for up to a time.
func (d *Device) Receive(ctx context.Context, random *rand.Rand, offline time.Duration) error {
	return follow(ctx, d.name, d.queues, func() {
		if !d.opened.IsZero() && random.IntN(10) == 0 {
			pause(ctx, time.Duration(random.Int64N(int64(offline))))
		}
	}, d.take)
}

func (d *Device) take(b queue.Batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened.IsZero() {
		d.opened = time.Now()
	}
	d.at = b.Next(d.at)
	if b.Lost {
		d.lost, d.missed = append(d.lost, time.Now()), 0
	}
	for _, m := range b.Messages {
		if m.Missed {
			d.lost, d.missed = append(d.lost, time.Now()), m.Number
		}
		d.received[string(m.Body)] = true
	}
}

// follow receives from a queue until the context ends, and then until the queue is empty. Before
// each request it calls before.
func follow(ctx context.Context, name string, queues *queue.Client, before func(), take func(queue.Batch)) error {
	var at queue.Place
	failures := 0
	for {
		before()
		asking, wait := ctx, 5*time.Second
		last := ctx.Err() != nil
		if last {
			asking = context.WithoutCancel(ctx)
		}
		if last || at.Epoch == "" { // the first request opens the queue
			wait = 0
		}
		b, err := queues.Receive(asking, name, at, wait)
		if err != nil {
			if last {
				failures++
			}
			if failures > maxFailures {
				return fmt.Errorf("%s: at the end: %w", name, err)
			}
			pause(asking, 100*time.Millisecond)
			continue
		}
		if err := consecutive(b, at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		take(b)
		at = b.Next(at)
		if last && len(b.Messages) == 0 {
			return nil
		}
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

// maxFailures bounds failed requests after the last fault.
const maxFailures = 5

// pause waits for a time, and reports whether the context is still active.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Send enqueues messages for the device until the context ends, and records acknowledged ones.
// Senders have different names.
func (d *Device) Send(ctx context.Context, from string, queues *queue.Client, random *rand.Rand) error {
	for i := 0; pause(ctx, time.Duration(random.IntN(1000))*time.Millisecond); i++ {
		id := fmt.Sprintf("%s.%d", from, i)
		receipt, err := queues.Enqueue(ctx, d.name, id, random.IntN(2) == 0)
		switch {
		case err == nil:
			d.mu.Lock()
			d.sent[quoted(id)] = sending{time.Now(), receipt}
			d.mu.Unlock()
		case errors.Is(err, leasehold.ErrInvalid):
			return err
		}
	}
	return nil
}

// Check compares acknowledged messages with received ones. There is no guarantee for messages
// from before the device opened its queue.
func (d *Device) Check() (Tally, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return compare(d.name, d.sent, d.received, func(s sending) (due, known bool) { return !s.at.Before(d.opened), d.lossReported(s) })
}

// lossReported reports whether the loss of a message was reported to the device. For a message
// in the final epoch of the queue, only a mark reports it.
func (d *Device) lossReported(s sending) bool {
	if s.receipt.Epoch == d.at.Epoch {
		return s.receipt.Number <= d.missed
	}
	return slices.ContainsFunc(d.lost, func(when time.Time) bool { return !when.Before(s.at) })
}
