package demo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// pcs are the home PC, whose address changes periodically, and the work PC, which watches it.
type pcs struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	moved   map[string]time.Time // when the home PC changed to an address
	learned []time.Duration      // latency until the work PC received it
}

func (d *demo) startPCs() *pcs {
	ctx, stop := context.WithCancel(context.Background())
	p := &pcs{stop: stop, moved: make(map[string]time.Time)}
	log := slog.New(slog.DiscardHandler)
	home := device.New(device.Config{Name: "home PC", Frontend: d.client(0), Logger: log}, "10.0.0.1")
	work := device.New(device.Config{Name: "work PC", Watch: []string{"home PC"}, Frontend: d.client(1), Logger: log, Learned: func(_, address string) {
		if took, ok := p.learn(address); ok {
			d.logf("the work PC received the home PC's address %s after %.0f ms", address, milliseconds(took))
		}
	}}, "10.9.9.9")
	p.running.Go(func() { _ = home.Run(ctx) }) // it runs until the context ends
	p.running.Go(func() { _ = work.Run(ctx) })
	p.running.Go(func() { p.move(ctx, home) })
	return p
}

// move gives the home PC a new address every two seconds.
func (p *pcs) move(ctx context.Context, home *device.Device) {
	for i := 2; proc.Pause(ctx, 2*time.Second); i++ {
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

// end stops both, and returns the latencies.
func (p *pcs) end() []time.Duration {
	p.stop()
	p.running.Wait()
	return p.learned
}
