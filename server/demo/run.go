package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// gcPercent makes garbage collection rare. There may be a million users; callers that wait
// for the collector's processor time would measure that and not the servers.
const gcPercent = 400

// figuresEvery is the interval between two lines of the log with figures.
const figuresEvery = 5 * time.Second

// Run runs a demo until its time is over or the context ends, logs what happens, and reports the
// result. An error means that it could not be carried out; then the report is not complete. All
// processes have ended and all files are removed when it returns, unless the configuration
// keeps the files.
func Run(parent context.Context, cfg Config, out io.Writer) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	c, err := newCluster(cfg, &journal{out: out, begin: time.Now()}, fail)
	if c == nil {
		return Report{}, err
	}
	d := &demo{cluster: c}
	if err == nil {
		err = d.run(ctx)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it was interrupted, or something else has failed
	}
	err = errors.Join(err, c.close()) // now all records have been read
	if failure := context.Cause(ctx); !errors.Is(failure, context.Cause(parent)) {
		err = errors.Join(err, failure)
	}
	r := d.report()
	r.Interrupted = parent.Err() != nil && (cfg.For == 0 || d.lasted < cfg.For)
	if cfg.Keep {
		r.Kept = c.dir
	}
	return r, err
}

// A demo is a cluster with load and faults. Those are nil until the cluster has started.
type demo struct {
	cluster *cluster
	load    *load
	nemesis *nemesis
	prober  *prober // nil without a rolling restart
	lasted  time.Duration
}

// run returns when everything that it started has ended, except for the processes.
func (d *demo) run(ctx context.Context) error {
	c := d.cluster
	if err := c.start(ctx); err != nil {
		return err
	}
	l, err := openLoad(ctx, c)
	if err != nil {
		return c.withManagerLog(err)
	}
	defer l.close()
	d.load, d.nemesis = l, newNemesis(c, l)
	c.journal.add("every key has an owner")
	if c.cfg.keepsStatuses() {
		if err := l.fill(ctx, d.progress("users have set a status")); err != nil {
			return err
		}
		runtime.GC() // of what filling has left, and not while latencies are measured
	}
	if c.cfg.Rolling {
		d.prober = newProber(l)
	}
	c.journal.add("%d users begin to call", c.cfg.Users)
	return d.callAndBreak(ctx)
}

// callAndBreak has callers call until the nemesis is done and the time is over. Requests that are
// under way when the context ends are dropped.
func (d *demo) callAndBreak(ctx context.Context) error {
	begin := time.Now()
	loading, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	var callers, working sync.WaitGroup
	var last error
	callers.Go(func() { last = d.load.run(loading, ctx, d.inspect) })
	callers.Go(func() { d.cluster.followMoves(loading, d.nemesis.countMove) })
	callers.Go(func() {
		for proc.Pause(loading, figuresEvery) {
			d.cluster.journal.add("%s", d.figures())
		}
	})
	if d.prober != nil {
		callers.Go(func() { d.prober.run(loading) })
	}
	working.Go(func() { d.nemesis.run(ctx) })
	if cfg := &d.cluster.cfg; cfg.For > 0 && cfg.Rounds == 0 {
		working.Go(func() { proc.Pause(ctx, cfg.For) })
	}
	working.Wait()
	d.lasted = time.Since(begin)
	stopLoad()
	callers.Wait()
	return last
}

// inspect looks all keys through, if no status may be lost.
func (d *demo) inspect(ctx context.Context) error {
	if !d.cluster.cfg.keepsStatuses() {
		return nil
	}
	return d.load.lookThrough(ctx, d.progress("keys have been looked through"))
}

// progress returns a function that logs the progress, once a second and at the end.
func (d *demo) progress(what string) func(done int) {
	last := time.Now()
	return func(done int) {
		if now := time.Now(); now.Sub(last) >= time.Second || done == d.cluster.cfg.Users {
			last = now
			d.cluster.journal.add("%d of %d %s", done, d.cluster.cfg.Users, what)
		}
	}
}

func (d *demo) figures() string {
	c, duals := d.load.tally.sum(), d.cluster.oracle.Judge().Duals
	return fmt.Sprintf("%s, %s, half within %.1f ms, %s, %s", count(c.Requests, "request"), count(c.Failures, "failure"),
		c.MedianMillis, count(c.Losses, "loss notice"), count(duals, "dual ownership"))
}

func (d *demo) report() Report {
	cfg, v := &d.cluster.cfg, d.cluster.oracle.Judge()
	r := Report{
		Seconds: d.lasted.Seconds(), Store: cfg.Store, Keys: cfg.Users, ValueSize: cfg.ValueSize,
		Rolling: cfg.Rolling, TLS: cfg.TLS, Supervised: cfg.Supervised, outage: cfg.Outage,
		OwnershipCounts: OwnershipCounts{v.Tenures, v.Checked, v.Duals, v.Reversals, v.First, v.Unjudged},
	}
	if d.load != nil {
		r.FaultCounts = d.nemesis.sum()
		c := d.load.tally.sum()
		r.CallCounts, r.LossCounts = c.CallCounts, c.LossCounts
	}
	if d.prober != nil {
		r.Unavailable = d.prober.unavailability()
	}
	if cfg.Outage > 0 {
		r.ByOutage = r.Losses
	}
	return r
}

// A journal is a log of what happens. It may be used by many goroutines at once.
type journal struct {
	out   io.Writer
	begin time.Time
	mu    sync.Mutex
}

// add writes a line. Errors are ignored.
func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = fmt.Fprintf(j.out, "%6.1fs %s\n", time.Since(j.begin).Seconds(), fmt.Sprintf(format, args...))
}
