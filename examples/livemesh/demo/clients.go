package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

const (
	clientCount = 4
	topicCount  = 2
	offline     = 5 * time.Second // at most
)

// client returns a client of all services, behind one of the frontends.
func (d *demo) client(i int) jsonhttp.Client {
	return frontend.Client(d.fleet.Frontends[i%len(d.fleet.Frontends)], clientCount)
}

// clients send, publish and receive, and record acknowledged and received messages. Each device
// receives messages of a sender and of a topic.
type clients struct {
	stopSending, stopReceiving context.CancelFunc
	senders                    sync.WaitGroup
	receivers                  errgroup.Group
	devices                    [clientCount]*promise.Device
	sent, published            [clientCount]promise.Acknowledged
}

// startClients starts clients that run until all messages are received.
func (d *demo) startClients() *clients {
	sending, stopSending := context.WithCancel(context.Background())
	receiving, stopReceiving := context.WithCancel(context.Background())
	w := &clients{stopSending: stopSending, stopReceiving: stopReceiving}
	for i := range clientCount {
		api, name := d.client(i), fmt.Sprint("device-", i)
		queues, topics := &queue.Client{Client: api}, &pubsub.Client{Client: api}
		device := promise.NewSubscriber(name, topicOf(i), queues, topics)
		w.devices[i] = device
		w.receivers.Go(func() error { return device.Receive(receiving, d.random(100+i), offline) })
		w.senders.Go(func() {
			w.sent[i] = promise.Enqueue(sending, fmt.Sprint("sender-", i), queues, name, d.random(110+i))
		})
		w.senders.Go(func() {
			w.published[i] = promise.Publish(sending, fmt.Sprint("publisher-", i), topics, topicOf(i), d.random(120+i))
		})
	}
	return w
}

// topicOf is the topic that a client publishes and subscribes to, as does another one.
func topicOf(client int) string { return fmt.Sprint("topic-", client%topicCount) }

func (w *clients) stop() {
	w.stopSending()
	w.stopReceiving()
}

// end waits until all messages are received, and compares them with the acknowledged ones.
func (w *clients) end() (queues, topics promise.Tally, err error) {
	w.stopSending()
	w.senders.Wait()
	w.stopReceiving()
	err = w.receivers.Wait()
	for i, device := range w.devices {
		tally, broken := device.Check(w.sent[i])
		queues.Add(tally)
		err = errors.Join(err, broken)
		for from, published := range w.published {
			if topicOf(from) == topicOf(i) {
				tally, broken = device.CheckTopic(published)
				topics.Add(tally)
				err = errors.Join(err, broken)
			}
		}
	}
	return queues, topics, err
}
