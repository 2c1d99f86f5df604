package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
)

// A demo is one run.
type demo struct {
	program, dir string
	flags        *demoFlags
	began        time.Time

	mu  sync.Mutex
	out io.Writer

	fleet *fleet.Fleet
}

// say tells people what happens.
func (d *demo) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// enough is how long it takes at most until the work PC knows a new address, also if what it
// needs has just been killed.
const enough = 10 * time.Second

// run returns what was seen. It fails if a promise was broken.
func (d *demo) run(ctx context.Context) (*demoReport, error) {
	d.say("starting managers, servers and frontends")
	var err error
	d.fleet, err = fleet.Start(ctx, fleet.Config{
		Program: d.program, Dir: d.dir, Services: namespaces(), Servers: 2, Managers: 3, Frontends: 2,
	})
	if err != nil {
		return nil, d.unlessInterrupted(ctx, err)
	}
	defer d.fleet.Close()
	d.say("ready: open %s/ in a browser", d.fleet.Frontends()[0])
	report := &demoReport{Seed: d.flags.seed}
	witnesses, err := d.witness(ctx)
	if err != nil {
		return nil, err
	}
	defer witnesses.stop()
	messenger, err := d.messenger(ctx)
	if err != nil {
		return nil, d.unlessInterrupted(ctx, err)
	}
	defer messenger.close()
	pcs, err := d.turnOn(ctx)
	if err != nil {
		return nil, err
	}
	defer pcs.stop()
	began := time.Now()
	report.Blows, err = d.suffer(ctx)
	if err != nil {
		return nil, err
	}
	report.Learned = pcs.off()
	if report.Presence, err = messenger.end(ctx); err != nil {
		return nil, err
	}
	report.Queues, report.Topics, err = witnesses.end()
	if err == nil && len(report.Learned) == 0 && time.Since(began) > enough {
		err = errors.New("the work PC never learned where the home PC is")
	}
	return report, err
}

// errInterrupted says that there is nothing to report.
var errInterrupted = errors.New("interrupted before it was ready")

// unlessInterrupted is an error that somebody should look into.
func (d *demo) unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// suffer has processes hurt until the time is over.
func (d *demo) suffer(ctx context.Context) (blows []string, err error) {
	random := rand.New(rand.NewPCG(d.flags.seed, 1))
	over := time.After(d.flags.length)
	for {
		select {
		case <-over:
			return blows, nil
		case err := <-d.fleet.Failed():
			return blows, err
		case <-ctx.Done():
			return blows, nil // that is what people do who have seen enough
		case <-time.After(time.Second + time.Duration(random.Int64N(int64(3*time.Second)))):
		}
		if d.flags.calm {
			continue
		}
		blow, err := d.fleet.Strike(ctx, random)
		if ctx.Err() != nil {
			return blows, nil //nolint:nilerr // as above
		}
		if err != nil {
			return blows, err
		}
		d.say("%s", blow)
		blows = append(blows, blow)
	}
}

// The pcs are the home PC, which gets a new address again and again, and the work PC, which
// wants to know it.
type pcs struct {
	stop    context.CancelFunc
	running errgroup.Group

	mu      sync.Mutex
	moved   map[string]time.Time // when the home PC got an address
	learned []time.Duration      // how long the work PC did not know
}

func (d *demo) turnOn(ctx context.Context) (*pcs, error) {
	ctx, stop := context.WithCancel(ctx)
	p := &pcs{stop: stop, moved: make(map[string]time.Time)}
	home, err := behind(d.fleet.Frontends()[0])
	if err != nil {
		return nil, err
	}
	work, err := behind(d.fleet.Frontends()[1])
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	home.Name, home.Logger = "home PC", quiet
	work.Name, work.Watch, work.Logger = "work PC", []string{"home PC"}, quiet
	work.Learned = func(_, address string) {
		if took, ok := p.learn(address); ok {
			d.say("the work PC knows that the home PC is at %s, %.0f ms later", address, float64(took.Microseconds())/1000)
		}
	}
	moving, atWork := device.New(home, "10.0.0.1"), device.New(work, "10.9.9.9")
	p.running.Go(func() error { return moving.Run(ctx) })
	p.running.Go(func() error { return atWork.Run(ctx) })
	p.running.Go(func() error {
		for i := 2; ; i++ {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(2 * time.Second):
			}
			address := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
			p.mu.Lock()
			p.moved[address] = time.Now()
			p.mu.Unlock()
			moving.Move(address)
		}
	})
	return p, nil
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

// off turns them off, and returns how long it took to learn addresses, sorted.
func (p *pcs) off() []time.Duration {
	p.stop()
	_ = p.running.Wait() // they were told to
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.learned)
	return p.learned
}

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
