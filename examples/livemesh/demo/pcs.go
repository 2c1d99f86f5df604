package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
)

// pcs are the home PC, which gets a new address again and again, and the work PC, which
// watches it.
type pcs struct {
	stop    context.CancelFunc
	running errgroup.Group

	mu      sync.Mutex
	moved   map[string]time.Time // when the home PC got an address
	learned []time.Duration      // how long it took the work PC to learn one
}

func (d *demo) startPCs(ctx context.Context) (*pcs, error) {
	ctx, stop := context.WithCancel(ctx)
	p := &pcs{stop: stop, moved: make(map[string]time.Time)}
	start := func(i int, cfg device.Config, address string) (one *device.Device, err error) {
		cfg.Logger = slog.New(slog.DiscardHandler)
		if cfg.Frontend, err = frontend.Client(d.fleet.Frontends()[i], 1); err == nil {
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
			d.say("the work PC knows that the home PC is at %s, %.0f ms later", address, milliseconds(took))
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

// end stops both, and returns how long it took to learn addresses, sorted.
func (p *pcs) end() []time.Duration {
	p.stop()
	_ = p.running.Wait() // they were interrupted
	slices.Sort(p.learned)
	return p.learned
}
