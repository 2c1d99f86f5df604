package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// witnesses send, publish and receive, and record what was acknowledged and received.
type witnesses struct {
	stopSending, stopReceiving context.CancelFunc
	senders, receivers         errgroup.Group
	devices                    []*promise.Device
	subscribers                []*promise.Subscriber
	published                  []promise.Published
}

const (
	topicCount = 2
	offline    = 5 * time.Second // at the most
)

func (d *demo) startWitnesses(ctx context.Context) (*witnesses, error) {
	ctx = context.WithoutCancel(ctx) // they go on until all has been received
	sending, stopSending := context.WithCancel(ctx)
	receiving, stopReceiving := context.WithCancel(ctx)
	w := &witnesses{stopSending: stopSending, stopReceiving: stopReceiving, published: make([]promise.Published, topicCount)}
	topic := func(i int) string { return fmt.Sprint("topic-", i%topicCount) }
	random := func(i int) *rand.Rand { return rand.New(rand.NewPCG(d.Seed, uint64(100+i))) }
	for i := range 4 {
		client, err := frontend.Client(d.fleet.Frontends()[i%2], 4)
		if err != nil {
			return nil, err
		}
		queues, topics := &queue.Client{Client: client}, &pubsub.Client{Client: client}
		device := promise.NewDevice(fmt.Sprint("device-", i), queues)
		w.devices = append(w.devices, device)
		w.receivers.Go(func() error { return device.Receive(receiving, random(i), offline) })
		w.senders.Go(func() error { return device.Send(sending, fmt.Sprint("sender-", i), queues, random(10+i)) })
		subscriber := promise.NewSubscriber(fmt.Sprint("subscriber-", i), topic(i), queues, topics)
		w.subscribers = append(w.subscribers, subscriber)
		w.receivers.Go(func() error { return subscriber.Live(receiving, random(20+i), offline) })
		if i < topicCount {
			w.senders.Go(func() error {
				w.published[i] = promise.Publish(sending, fmt.Sprint("publisher-", i), topics, topic(i), random(30+i))
				return nil
			})
		}
	}
	return w, nil
}

// stop ends all requests at once.
func (w *witnesses) stop() {
	w.stopSending()
	w.stopReceiving()
}

// end lets all messages be received, and compares them with those that were acknowledged.
func (w *witnesses) end() (queues, topics promise.Tally, err error) {
	w.stopSending()
	err = w.senders.Wait()
	w.stopReceiving()
	err = errors.Join(err, w.receivers.Wait())
	for _, device := range w.devices {
		tally, broken := device.Check()
		queues.Add(tally)
		err = errors.Join(err, broken)
	}
	for i, subscriber := range w.subscribers {
		tally, broken := subscriber.Check(w.published[i%topicCount])
		topics.Add(tally)
		err = errors.Join(err, broken)
	}
	return queues, topics, err
}
