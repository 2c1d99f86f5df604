// Package demo runs all of Live Mesh as processes of this machine, injects faults, and checks
// that devices, subscribers and users receive what the services guarantee.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
	"github.com/leasehold-dev/leasehold/examples/livemesh/promise"
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
		return nil, unlessInterrupted(ctx, err)
	}
	defer d.fleet.Close()
	d.logf("ready: open %s/ in a browser", d.fleet.Frontends[0])
	clients, err := d.startClients(ctx)
	if err != nil {
		return nil, err
	}
	defer clients.stop()
	publishers, closeAll, err := load.Open(ctx, d.fleet.Managers, d.fleet.Frontends, 4, 1)
	if err != nil {
		return nil, unlessInterrupted(ctx, err)
	}
	defer closeAll()
	// A low rate, which leaves the processors to the other processes.
	presence, err := load.Start(context.WithoutCancel(ctx), load.Config{
		Publishers: publishers, Users: 25, Callers: 1, Inserts: 1, Updates: 4, Reads: 5, Rate: 50, Seed: d.Seed,
	})
	if err != nil {
		return nil, unlessInterrupted(ctx, err)
	}
	pcs, err := d.startPCs(ctx)
	if err != nil {
		return nil, err
	}
	defer pcs.stop()
	report := &Report{Seed: d.Seed}
	began := time.Now()
	if report.Blows, err = d.injectFaults(ctx); err != nil {
		return nil, err
	}
	report.setLearned(pcs.end())
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if report.Presence, err = presence.Finish(ending); err != nil {
		return nil, err
	}
	report.Queues, report.Topics, err = clients.end()
	if report.Addresses == 0 && time.Since(began) > learnTime {
		err = errors.Join(err, errors.New("the work PC never received the home PC's address"))
	}
	return report, errors.Join(report.Presence.Err(), err)
}

func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// injectFaults kills, stops and restarts processes until the time is over or the context ends.
func (d *demo) injectFaults(ctx context.Context) ([]string, error) {
	blows := []string{}
	random := rand.New(rand.NewPCG(d.Seed, 1))
	over := time.After(d.Length)
	for {
		select {
		case <-over:
			return blows, nil
		case err := <-d.fleet.Failed:
			return blows, err
		case <-ctx.Done():
			return blows, nil
		case <-time.After(time.Second + time.Duration(random.Int64N(int64(3*time.Second)))):
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
}

// A Report is the result of a demo.
type Report struct {
	Seed      uint64        `json:"seed"`
	Blows     []string      `json:"blows"`
	Addresses int           `json:"addresses_learned"`
	P50       float64       `json:"learned_p50_ms"`
	Longest   float64       `json:"learned_max_ms"`
	Queues    promise.Tally `json:"queues"`
	Topics    promise.Tally `json:"topics"`
	Presence  *load.Report  `json:"presence"`
}

// setLearned sets the latency of address changes, from sorted values.
func (r *Report) setLearned(took []time.Duration) {
	if r.Addresses = len(took); r.Addresses > 0 {
		r.P50, r.Longest = milliseconds(took[(len(took)-1)/2]), milliseconds(took[len(took)-1])
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// String returns the report as text.
func (r *Report) String() string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n%s was killed, stopped or restarted (--seed %d)\n", times(len(r.Blows)), r.Seed)
	if r.Addresses == 0 {
		fmt.Fprintln(w, "home PC    the work PC learned no address: the demo was too short")
	} else {
		fmt.Fprintf(w, "home PC    the work PC learned %d addresses: half of them within %.0f ms, the longest took %.0f ms\n", r.Addresses, r.P50, r.Longest)
	}
	fmt.Fprintf(w, "queues     %d messages were acknowledged, %s\n", r.Queues.Due, r.Queues)
	fmt.Fprintf(w, "topics     %d copies were due, %s\n", r.Topics.Due, r.Topics)
	fmt.Fprintf(w, "presence   %s", r.Presence)
	return w.String()
}

func times(n int) string {
	switch n {
	case 0:
		return "nothing"
	case 1:
		return "once something"
	}
	return fmt.Sprintf("%d times something", n)
}
