// Package demo runs all of Live Mesh as processes of this machine, injects faults, and checks
// that devices, subscribers and users receive what the services guarantee.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// Config configures a demo.
type Config struct {
	Length time.Duration
	Seed   uint64 // of the faults
	Calm   bool   // without faults
	// Out receives a log of events.
	Out io.Writer
}

type demo struct {
	Config
	fleet *fleet.Fleet
	began time.Time
	mu    sync.Mutex // for Out
}

func (d *demo) logf(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.Out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// random returns a stream of random numbers.
func (d *demo) random(stream int) *rand.Rand { return rand.New(rand.NewPCG(d.Seed, uint64(stream))) }

const (
	learnTime = 10 * time.Second // until the work PC receives a new address, even after a kill
	endTime   = time.Minute      // until all users are present again
)

// ErrInterrupted is the error of [Run] if the context ended before the processes were ready.
var ErrInterrupted = errors.New("interrupted before all processes were ready")

// Run runs a demo with a fleet that start starts. It fails if a guarantee was violated. If the
// context ends, the demo ends early.
func Run(ctx context.Context, cfg Config, start func(context.Context) (*fleet.Fleet, error)) (*Report, error) {
	d := &demo{Config: cfg, began: time.Now()}
	d.logf("starting managers, servers and frontends")
	var err error
	if d.fleet, err = start(ctx); err != nil {
		if ctx.Err() != nil {
			err = ErrInterrupted
		}
		return nil, err
	}
	defer d.fleet.Close()
	d.logf("ready: open %s/ in a browser", d.fleet.Frontends[0])
	clients := d.startClients()
	defer clients.stop()
	presence, err := d.startPresence(ctx)
	if err != nil {
		return nil, err
	}
	defer presence.stop()
	pcs := d.startPCs()
	defer pcs.stop()

	report, calling := &Report{Seed: d.Seed}, time.Now()
	if report.Blows, err = d.injectFaults(ctx); err != nil {
		return nil, err
	}
	report.setLearned(pcs.end())
	if report.Addresses == 0 && time.Since(calling) > learnTime {
		err = errors.New("the work PC never received the home PC's address")
	}
	report.Presence = presence.end()
	var broken error
	report.Queues, report.Topics, broken = clients.end()
	return report, errors.Join(err, report.Presence.err(), broken)
}

// injectFaults kills, stops and restarts processes until the time is over or the context ends.
func (d *demo) injectFaults(ctx context.Context) ([]string, error) {
	blows, random := []string{}, d.random(1)
	striking, cancel := context.WithTimeout(ctx, d.Length)
	defer cancel()
	for proc.Pause(striking, time.Second+time.Duration(random.Int64N(int64(3*time.Second)))) {
		select {
		case err := <-d.fleet.Failed:
			return blows, err
		default:
		}
		if d.Calm {
			continue
		}
		blow, err := d.fleet.Strike(ctx, random)
		if ctx.Err() != nil {
			return blows, nil //nolint:nilerr // interrupted
		}
		if err != nil {
			return blows, err
		}
		d.logf("%s", blow)
		blows = append(blows, blow)
	}
	return blows, nil
}
