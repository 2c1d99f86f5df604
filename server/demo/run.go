package demo

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// gcPercent makes garbage collection rare. There may be a million users; callers that wait
// for the collector's processor time would measure that and not the servers.
const gcPercent = 400

// Run runs a demo until its time is over or the context ends, and reports the result. An
// error means that it could not be carried out; then the report is not complete. All
// processes have ended and all files are removed when it returns, unless the configuration
// keeps the files.
//
// Watch is called a few times a second with the current state, by one goroutine at a time.
func Run(parent context.Context, cfg Config, watch func(Snapshot)) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	c, err := newCluster(cfg, fail)
	if c == nil {
		return Report{}, err
	}
	d := &demo{cluster: c, nemesis: newNemesis(c), observer: &observer{cluster: c}, watch: watch}
	if err == nil {
		err = d.run(ctx)
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

type demo struct {
	cluster  *cluster
	nemesis  *nemesis
	observer *observer
	watch    func(Snapshot)

	mu     sync.Mutex
	load   *load     // nil while the cluster starts
	prober *prober   // nil without a rolling restart
	begin  time.Time // of the load
	lasted time.Duration
}

// run returns when everything that it started has ended, except for the processes.
func (d *demo) run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { d.observer.run(watching) })
	watchers.Go(func() {
		for proc.Pause(watching, observeEvery) {
			d.watch(d.snapshot())
		}
	})
	err := d.perform(ctx)
	stop()
	watchers.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it was interrupted, or something else has failed
	}
	d.watch(d.snapshot())
	return err
}

func (d *demo) perform(ctx context.Context) error {
	c := d.cluster
	if err := c.start(ctx); err != nil {
		return err
	}
	l, err := openLoad(ctx, c)
	if err != nil {
		return c.withManagerLog(err)
	}
	defer l.close()
	c.journal.add("every key has an owner")
	if c.cfg.keepsStatuses() {
		if err := l.fill(ctx, d.progress("users have set a status")); err != nil {
			return err
		}
		c.journal.add("all users have set a status of %d bytes", c.cfg.ValueSize)
		runtime.GC() // of what filling has left, and not while latencies are measured
	}
	var p *prober
	if c.cfg.Rolling {
		p = newProber(l)
	}
	d.nemesis.load = l
	c.journal.add("%d users begin to call", c.cfg.Users)
	d.mu.Lock()
	d.load, d.prober, d.begin = l, p, time.Now()
	d.mu.Unlock()
	return d.callAndBreak(ctx)
}

// callAndBreak has callers call until the nemesis is done and the time is over. Requests that are
// under way when the context ends are dropped.
func (d *demo) callAndBreak(ctx context.Context) error {
	loading, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	var callers, working sync.WaitGroup
	var last error
	callers.Go(func() { last = d.load.run(loading, ctx, d.inspect) })
	callers.Go(func() {
		d.cluster.followMoves(loading, func(share float64) {
			d.nemesis.count(func(f *FaultCounts) { f.MovedRanges, f.MovedShare = f.MovedRanges+1, f.MovedShare+share })
		})
	})
	if d.prober != nil {
		callers.Go(func() { d.prober.run(loading, ctx) })
	}
	working.Go(func() { d.nemesis.run(ctx) })
	if cfg := &d.cluster.cfg; cfg.For > 0 && cfg.Rounds == 0 {
		working.Go(func() { proc.Pause(ctx, cfg.For) })
	}
	working.Wait()
	d.mu.Lock()
	d.lasted = time.Since(d.begin)
	d.mu.Unlock()
	stopLoad()
	callers.Wait()
	return last
}

// inspect looks all keys through, if no status may be lost.
func (d *demo) inspect(ctx context.Context) error {
	if !d.cluster.cfg.keepsStatuses() {
		return nil
	}
	err := d.load.lookThrough(ctx, d.progress("keys have been looked through"))
	if err == nil {
		d.cluster.journal.add("all keys have been looked through")
	}
	return err
}

// progress returns a function that adds the progress to the journal, once a second.
func (d *demo) progress(what string) func(done int) {
	last := time.Now()
	return func(done int) {
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			d.cluster.journal.add("%d of %d %s", done, d.cluster.cfg.Users, what)
		}
	}
}

// elapsed is the time for which callers have called.
func (d *demo) elapsed() time.Duration {
	switch {
	case d.load == nil:
		return 0
	case d.lasted > 0:
		return d.lasted
	}
	return time.Since(d.begin)
}

func (d *demo) report() Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	cfg, v := &d.cluster.cfg, d.cluster.oracle.Judge()
	r := Report{
		Seconds: d.elapsed().Seconds(), Store: cfg.Store, Keys: cfg.Users, ValueSize: cfg.ValueSize,
		Rolling: cfg.Rolling, TLS: cfg.TLS, outage: cfg.Outage,
		OwnershipCounts: OwnershipCounts{v.Tenures, v.Checked, v.Duals, v.Reversals, v.First, v.Unjudged},
		FaultCounts:     d.nemesis.sum(),
	}
	if d.prober != nil {
		r.Unavailable, r.unanswered = d.prober.unavailability()
	}
	if d.load != nil {
		c := d.load.tally.sum()
		r.CallCounts, r.LossCounts = c.CallCounts, c.LossCounts
	}
	if cfg.Outage > 0 {
		r.ByOutage = r.Losses
	}
	return r
}

func (d *demo) snapshot() Snapshot {
	s := Snapshot{Of: d.cluster.cfg.For, Report: d.report()}
	d.observer.fill(&s)
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Elapsed = d.elapsed()
	if d.load != nil {
		s.PerSecond, s.Median, s.Slow = d.load.tally.lately()
	}
	return s
}
