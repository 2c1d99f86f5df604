package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
)

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
