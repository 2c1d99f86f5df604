package actor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A CallerConfig says how to run a caller.
type CallerConfig struct {
	Number    int // which one it is
	Managers  []string
	Registers int           // how many registers there are
	Workers   int           // how many requests it makes at a time
	Every     time.Duration // the time between two requests of a worker, on average
	Poll      time.Duration // see [lookup.Config]
	Stale     time.Duration
	Events    io.Writer
	Logger    *slog.Logger
}

// AddFlags adds the flags of a caller.
func (cfg *CallerConfig) AddFlags(f *pflag.FlagSet) {
	f.IntVar(&cfg.Number, "number", 0, "which caller it is")
	f.StringSliceVar(&cfg.Managers, "managers", nil, "where managers listen")
	f.IntVar(&cfg.Registers, "registers", 1, "how many registers there are")
	f.IntVar(&cfg.Workers, "workers", 1, "how many requests it makes at a time")
	f.DurationVar(&cfg.Every, "every", 0, "the time between two requests")
	f.DurationVar(&cfg.Poll, "poll", 0, "how often to ask whether the table is complete")
	f.DurationVar(&cfg.Stale, "stale", 0, "how old the proof of that may become")
}

// A caller is one process that uses registers.
type caller struct {
	cfg    CallerConfig
	lookup *lookup.Lookup
	out    *history.Writer
}

// beatEvery is how often a caller says that it lives, and of so many beats one says what
// that takes.
const (
	beatEvery = 100 * time.Millisecond
	vitalBeat = 10
)

// RunCaller runs a caller until the context ends.
func RunCaller(ctx context.Context, cfg CallerConfig) error {
	c := &caller{cfg: cfg, out: history.NewWriter(cfg.Events)}
	if err := c.open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	do := func(f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	if err := c.out.Write(history.Event{At: oracle.Now(), Opened: true, Conservative: c.conservative()}); err != nil {
		return err
	}
	do(c.beat)
	do(c.follow)
	for worker := range cfg.Workers {
		do(func(ctx context.Context) error { return c.work(ctx, cfg.Number*maxWorkers+worker) })
	}
	<-ctx.Done()
	running.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, c.lookup.Close(context.Background()))
}

// maxWorkers is how many workers a caller has at most, so that each has a number of its own.
const maxWorkers = 1000

// open opens the lookup, however long it takes.
func (c *caller) open(ctx context.Context) (err error) {
	c.lookup, err = retry(ctx, c.cfg.Logger, "opening", func(ctx context.Context) (*lookup.Lookup, error) {
		return lookup.Open(ctx, lookup.Config{
			Namespace: Namespace, Managers: c.cfg.Managers, OnLoss: c.lost, Poll: c.cfg.Poll, Stale: c.cfg.Stale,
			OnContact: c.contact, ConservativeRecovery: c.conservative(),
			Credentials: insecure.NewCredentials(), Logger: c.cfg.Logger,
		})
	})
	return err
}

// lost writes down what the lookup reports. That nobody reads it any more is found
// out by others.
func (c *caller) lost(losses []leasehold.Loss) {
	for _, l := range losses {
		_ = c.out.Write(history.Event{At: oracle.Now(), Loss: &history.Loss{
			Start: l.Range.Start, Limit: l.Range.Limit, Generation: l.Generation, Cause: l.Cause, LSN: l.LSN,
		}})
	}
}

// conservative reports whether the lookup reports everything as lost when contact is: every second caller's does.
func (c *caller) conservative() bool { return c.cfg.Number%2 == 1 }

// contact writes down that contact was lost or restored.
func (c *caller) contact(now lookup.Contact) {
	_ = c.out.Write(history.Event{At: oracle.Now(), Contact: &history.Contact{Lost: now.Lost}})
}

// beat says that the caller lives.
func (c *caller) beat(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		e := history.Event{At: oracle.Now()}
		if i%vitalBeat == 0 {
			s := leaks.Inside()
			e.Vitals = &s
		}
		if err := c.out.Write(e); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// follow writes down each table that it gets to see.
func (c *caller) follow(ctx context.Context) error {
	for {
		changed := c.lookup.Changed()
		if t, ok := c.table(); ok {
			if err := c.out.Write(history.Event{At: oracle.Now(), Table: &t}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
