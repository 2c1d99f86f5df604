package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// witnesses send, publish and receive, and know what was promised.
type witnesses struct {
	stopSending, stopReceiving context.CancelFunc
	senders, receivers         errgroup.Group
	devices                    []*promise.Device
	subscribers                []*promise.Subscriber
	published                  []promise.Published
}

const topics = 2

func (d *demo) witness(ctx context.Context) (*witnesses, error) {
	ctx = context.WithoutCancel(ctx) // to the end: they must know what became of it
	sending, stopSending := context.WithCancel(ctx)
	receiving, stopReceiving := context.WithCancel(ctx)
	w := &witnesses{stopSending: stopSending, stopReceiving: stopReceiving, published: make([]promise.Published, topics)}
	topic := func(i int) string { return fmt.Sprint("topic-", i%topics) }
	random := func(i int) *rand.Rand { return rand.New(rand.NewPCG(d.flags.seed, uint64(100+i))) }
	offline := 5 * time.Second
	for i := range 4 {
		asks, err := behind(d.fleet.Frontends()[i%2])
		if err != nil {
			return nil, err
		}
		one := promise.NewDevice(fmt.Sprint("device-", i), asks.Queues)
		w.devices = append(w.devices, one)
		w.receivers.Go(func() error { return one.Receive(receiving, random(i), offline) })
		w.senders.Go(func() error { return one.Send(sending, fmt.Sprint("sender-", i), asks.Queues, random(10+i)) })
		subscriber := promise.NewSubscriber(fmt.Sprint("subscriber-", i), topic(i), asks.Queues, asks.Topics)
		w.subscribers = append(w.subscribers, subscriber)
		w.receivers.Go(func() error { return subscriber.Live(receiving, random(20+i), offline) })
		if i < topics {
			w.senders.Go(func() error {
				w.published[i] = promise.Publish(sending, fmt.Sprint("publisher-", i), asks.Topics, topic(i), random(30+i))
				return nil
			})
		}
	}
	return w, nil
}

// stop stops them, whatever they know.
func (w *witnesses) stop() {
	w.stopSending()
	w.stopReceiving()
}

// end ends them, and holds what was received against what was promised.
func (w *witnesses) end() (queues, topicsTally promise.Tally, err error) {
	w.stopSending()
	err = w.senders.Wait()
	w.stopReceiving()
	err = errors.Join(err, w.receivers.Wait())
	for _, one := range w.devices {
		t, broken := one.Check()
		queues.Add(t)
		err = errors.Join(err, broken)
	}
	for i, s := range w.subscribers {
		t, broken := s.Check(w.published[i%topics])
		topicsTally.Add(t)
		err = errors.Join(err, broken)
	}
	return queues, topicsTally, err
}
