package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// clients send, publish and receive, and record acknowledged and received messages.
type clients struct {
	stopSending, stopReceiving context.CancelFunc
	senders, receivers         errgroup.Group
	devices                    []*promise.Device
	subscribers                []*promise.Subscriber
	published                  []promise.Published
}

const (
	topicCount = 2
	offline    = 5 * time.Second // at most
)

func (d *demo) startClients(ctx context.Context) (*clients, error) {
	ctx = context.WithoutCancel(ctx) // they run until all messages are received
	sending, stopSending := context.WithCancel(ctx)
	receiving, stopReceiving := context.WithCancel(ctx)
	w := &clients{stopSending: stopSending, stopReceiving: stopReceiving, published: make([]promise.Published, topicCount)}
	topic := func(i int) string { return fmt.Sprint("topic-", i%topicCount) }
	random := func(i int) *rand.Rand { return rand.New(rand.NewPCG(d.Seed, uint64(100+i))) }
	for i := range 4 {
		client, err := frontend.Client(d.fleet.Frontends[i%2], 4)
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

func (w *clients) stop() {
	w.stopSending()
	w.stopReceiving()
}

// end waits until all messages are received, and compares them with the acknowledged ones.
func (w *clients) end() (queues, topics promise.Tally, err error) {
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

// pcs are the home PC, whose address changes periodically, and the work PC, which watches it.
type pcs struct {
	stop    context.CancelFunc
	running errgroup.Group

	mu      sync.Mutex
	moved   map[string]time.Time // when the home PC changed to an address
	learned []time.Duration      // latency until the work PC received it
}

func (d *demo) startPCs(ctx context.Context) (*pcs, error) {
	ctx, stop := context.WithCancel(ctx)
	p := &pcs{stop: stop, moved: make(map[string]time.Time)}
	start := func(i int, cfg device.Config, address string) (one *device.Device, err error) {
		cfg.Logger = slog.New(slog.DiscardHandler)
		if cfg.Frontend, err = frontend.Client(d.fleet.Frontends[i], 1); err == nil {
			one = device.New(cfg, address)
			p.running.Go(func() error { return one.Run(ctx) })
		}
		return one, err
	}
	home, err := start(0, device.Config{Name: "home PC"}, "10.0.0.1")
	if err != nil {
		return nil, err
	}
	_, err = start(1, device.Config{Name: "work PC", Watch: []string{"home PC"}, Learned: func(_, address string) {
		if took, ok := p.learn(address); ok {
			d.logf("the work PC received the home PC's address %s after %.0f ms", address, milliseconds(took))
		}
	}}, "10.9.9.9")
	if err != nil {
		return nil, err
	}
	p.running.Go(func() error { p.move(ctx, home); return nil })
	return p, nil
}

// move gives the home PC a new address every two seconds.
func (p *pcs) move(ctx context.Context, home *device.Device) {
	for i := 2; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
		address := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		p.mu.Lock()
		p.moved[address] = time.Now()
		p.mu.Unlock()
		home.Move(address)
	}
}

func (p *pcs) learn(address string) (took time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.moved[address]
	if ok {
		took = time.Since(at)
		p.learned = append(p.learned, took)
	}
	return took, ok
}

// end stops both, and returns the sorted latencies.
func (p *pcs) end() []time.Duration {
	p.stop()
	_ = p.running.Wait() // canceled
	slices.Sort(p.learned)
	return p.learned
}
