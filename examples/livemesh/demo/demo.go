// Package demo runs all of Live Mesh as processes of this computer, kills some of them, and
// compares what devices, subscribers and users see with what the services promise.
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

// Config says what is run, and for how long.
type Config struct {
	Length time.Duration
	Seed   uint64 // decides what is killed, and when
	Calm   bool   // nothing is killed
	// Out gets what happens, as text.
	Out io.Writer
}

type demo struct {
	Config
	fleet *fleet.Fleet
	began time.Time
	mu    sync.Mutex // for Out
}

func (d *demo) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.Out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

const (
	learnTime = 10 * time.Second // until the work PC has a new address, even after a kill
	endTime   = time.Minute      // until all users are there again
)

// ErrInterrupted says that the context ended before there was anything to report.
var ErrInterrupted = errors.New("interrupted before it was ready")

// Run runs a demo with a fleet that start starts, and fails if a promise was broken. If the
// context ends, it ends early.
func Run(ctx context.Context, cfg Config, start func(context.Context) (*fleet.Fleet, error)) (*Report, error) {
	d := &demo{Config: cfg, began: time.Now()}
	d.say("starting managers, servers and frontends")
	var err error
	if d.fleet, err = start(ctx); err != nil {
		return nil, unlessInterrupted(ctx, err)
	}
	defer d.fleet.Close()
	d.say("ready: open %s/ in a browser", d.fleet.Frontends[0])
	witnesses, err := d.startWitnesses(ctx)
	if err != nil {
		return nil, err
	}
	defer witnesses.stop()
	publishers, closeAll, err := load.Open(ctx, d.fleet.Managers, d.fleet.Frontends, 4, 1)
	if err != nil {
		return nil, unlessInterrupted(ctx, err)
	}
	defer closeAll()
	// It is slow enough to leave the processors to the others.
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
	if report.Blows, err = d.strike(ctx); err != nil {
		return nil, err
	}
	report.setLearned(pcs.end())
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if report.Presence, err = presence.Finish(ending); err != nil {
		return nil, err
	}
	report.Queues, report.Topics, err = witnesses.end()
	if report.Addresses == 0 && time.Since(began) > learnTime {
		err = errors.Join(err, errors.New("the work PC never learned where the home PC is"))
	}
	return report, errors.Join(report.Presence.Err(), err)
}

func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// strike kills, stops and restarts processes until the time is over, or the user has seen
// enough.
func (d *demo) strike(ctx context.Context) ([]string, error) {
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
			return blows, nil //nolint:nilerr // it was interrupted
		}
		if err != nil {
			return blows, err
		}
		d.say("%s", blow)
		blows = append(blows, blow)
	}
}

// A Report is what was seen.
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

// setLearned sets how long it took to learn addresses, given all times in order.
func (r *Report) setLearned(took []time.Duration) {
	if r.Addresses = len(took); r.Addresses > 0 {
		r.P50, r.Longest = milliseconds(took[(len(took)-1)/2]), milliseconds(took[len(took)-1])
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// String is the report for people.
func (r *Report) String() string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n%s was killed, stopped or restarted (--seed %d)\n", times(len(r.Blows)), r.Seed)
	if r.Addresses == 0 {
		fmt.Fprintln(w, "home PC    the work PC learned no address: it was over too soon")
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
