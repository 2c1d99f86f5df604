package actor

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A CallerConfig configures a caller.
type CallerConfig struct {
	Number    int // of the caller
	Managers  []string
	Registers int           // number of registers
	Workers   int           // concurrent requests
	Every     time.Duration // mean time between two requests of a worker
	Poll      time.Duration // see [lookup.Config]
	Stale     time.Duration
	Events    io.Writer
	Logger    *slog.Logger
}

// AddFlags adds the flags of a caller.
func (cfg *CallerConfig) AddFlags(f *pflag.FlagSet) {
	f.IntVar(&cfg.Number, "number", 0, "number of the caller")
	f.StringSliceVar(&cfg.Managers, "managers", nil, "addresses of managers")
	f.IntVar(&cfg.Registers, "registers", 1, "number of registers")
	f.IntVar(&cfg.Workers, "workers", 1, "number of concurrent requests")
	f.DurationVar(&cfg.Every, "every", 0, "mean time between two requests")
	f.DurationVar(&cfg.Poll, "poll", 0, "interval of requests to the managers")
	f.DurationVar(&cfg.Stale, "stale", 0, "maximum age of the last reply")
}

type caller struct {
	cfg    CallerConfig
	lookup *lookup.Lookup
	out    *history.Writer
}

// beatEvery is the interval of heartbeats; one in vitalBeat has the resource usage.
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
	if err := c.out.Write(history.Event{At: oracle.Now(), Opened: true, Conservative: c.conservative()}); err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return c.beat(ctx) })
	running.Go(func() error { return c.follow(ctx) })
	for worker := range cfg.Workers {
		running.Go(func() error { return c.work(ctx, cfg.Number*maxWorkers+worker) })
	}
	return errors.Join(running.Wait(), c.lookup.Close(context.Background()))
}

// maxWorkers limits the workers of a caller, so that each has a unique number.
const maxWorkers = 1000

// open opens the lookup, with retries.
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

// lost records losses. If no process reads them, other writes fail.
func (c *caller) lost(losses []leasehold.Loss) {
	for _, l := range losses {
		_ = c.out.Write(history.Event{At: oracle.Now(), Loss: &history.Loss{
			Start: l.Range.Start, Limit: l.Range.Limit, Generation: l.Generation, Cause: l.Cause, LSN: l.LSN,
		}})
	}
}

// conservative reports whether the lookup uses ConservativeRecovery: every second caller's does.
func (c *caller) conservative() bool { return c.cfg.Number%2 == 1 }

func (c *caller) contact(now lookup.Contact) {
	_ = c.out.Write(history.Event{At: oracle.Now(), Contact: &history.Contact{Lost: now.Lost}})
}

func (c *caller) beat(ctx context.Context) error {
	for i := 0; ; i++ {
		e := history.Event{At: oracle.Now()}
		if i%vitalBeat == 0 {
			s := leaks.Inside()
			e.Vitals = &s
		}
		if err := c.out.Write(e); err != nil {
			return err
		}
		if !proc.Pause(ctx, beatEvery) {
			return nil
		}
	}
}

// follow records each table.
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

// table describes the lease table of the lookup. It returns false if the table changed while it was read.
func (c *caller) table() (history.Table, bool) {
	sum := xxhash.New()
	var lsn leasehold.LSN
	for key := leasehold.Key(0); ; {
		p, _ := c.lookup.At(key)
		if key != 0 && p.LSN != lsn {
			return history.Table{}, false
		}
		lsn = p.LSN
		describe(sum, p)
		if key = p.Range.Limit; key == 0 {
			return history.Table{LSN: lsn, Hash: sum.Sum64()}, true
		}
	}
}

func describe(sum *xxhash.Digest, p lookup.Placement) {
	var numbers [24]byte
	binary.LittleEndian.PutUint64(numbers[0:], uint64(p.Range.Start))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(p.Range.Limit))
	binary.LittleEndian.PutUint64(numbers[16:], uint64(p.Generation))
	_, _ = sum.Write(numbers[:]) // the error is always nil
	_, _ = sum.Write(p.Session[:])
	_, _ = sum.WriteString(string(p.Owner) + "\x00" + p.Addr + "\x00")
}
