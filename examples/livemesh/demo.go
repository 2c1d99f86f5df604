package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
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
