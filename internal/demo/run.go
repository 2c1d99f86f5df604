package demo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/child"
)

// Run runs a demo until its time is over or the context ends, and says what
// came of it. An error means that it could not be carried out; then the report
// is not complete. Whatever it started and wrote is gone when it returns,
// unless the configuration says to keep the files.
//
// Watch is called a few times a second with how it stands, never twice at a
// time.
func Run(ctx context.Context, cfg Config, watch func(Snapshot)) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	defer letGarbageWait()()
	c, err := newCluster(cfg)
	if c == nil {
		return Report{}, err
	}
	d := &demo{cluster: c, nemesis: &nemesis{cluster: c}, observer: &observer{cluster: c}, watch: watch}
	if err == nil {
		err = d.run(ctx)
	}
	err = errors.Join(err, c.close(), c.failure()) // now all records have been read
	r := d.report()
	r.Interrupted = ctx.Err() != nil && (cfg.For == 0 || d.lasted < cfg.For)
	if cfg.Keep {
		r.Kept = c.dir
	}
	return r, err
}

// A demo is the parts of one run.
type demo struct {
	cluster  *cluster
	nemesis  *nemesis
	observer *observer
	watch    func(Snapshot)

	mu     sync.Mutex
	load   *load     // nil while the cluster starts
	prober *prober   // nil if nobody keeps asking
	begin  time.Time // of the load
	lasted time.Duration
}

// run returns when everything that it started has ended, but for the processes.
func (d *demo) run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { d.observer.run(watching) })
	watchers.Go(func() { d.show(watching) })
	err := d.perform(ctx)
	stop()
	watchers.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it was interrupted while something was waited for
	}
	d.watch(d.snapshot())
	return err
}

// perform starts the cluster, then lets callers and nemesis at it.
func (d *demo) perform(ctx context.Context) error {
	c := d.cluster
	if err := c.start(ctx); err != nil {
		return err
	}
	l, err := openLoad(ctx, c)
	if err != nil {
		return fmt.Errorf("%w; %s", err, child.Tail(c.managers[0].Launch.Log))
	}
	defer l.close()
	c.journal.add("every key has an owner")
	var p *prober
	if c.cfg.keepsStatuses() {
		if err := l.fill(ctx, d.progress("users have set a status")); err != nil {
			return err
		}
		c.journal.add("all users have set a status of %d bytes", c.cfg.ValueSize)
		runtime.GC() // of what filling has left behind, and not while they measure
	}
	if c.cfg.Rolling {
		p = newProber(l, c.certificates.dialer())
	}
	d.nemesis.load = l
	c.journal.add("%d users begin to call", c.cfg.Users)
	d.beginLoad(l, p)
	return d.trouble(ctx, l, p)
}

// trouble lets callers call until the nemesis is done. If that fails, they do not
// finish what they are at.
func (d *demo) trouble(ctx context.Context, l *load, p *prober) error {
	whole, drop := context.WithCancel(ctx)
	defer drop()
	loading, stopLoad := context.WithCancel(whole)
	var callers sync.WaitGroup
	var last error
	callers.Go(func() { last = l.run(loading, whole, d.inspect) })
	callers.Go(func() { d.cluster.moved.follow(loading, d.cluster.admin) })
	if p != nil {
		callers.Go(func() { p.run(loading, whole) })
	}
	err := d.strike(ctx)
	d.endLoad()
	if err != nil {
		drop()
	}
	stopLoad()
	callers.Wait()
	if err != nil {
		return err
	}
	return last
}

// inspect looks all keys through, if none can have lost its status.
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

// progress returns what tells people, once a second, how far something is. It may
// be used from many goroutines at once.
func (d *demo) progress(what string) func(done int) {
	var mu sync.Mutex
	said := time.Now()
	return func(done int) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(said) >= time.Second {
			said = now
			d.cluster.journal.add("%d of %d %s", done, d.cluster.cfg.Users, what)
		}
	}
}

// strike lets the nemesis work until it is done and the time is over, or
// something fails.
func (d *demo) strike(ctx context.Context) error {
	c := d.cluster
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var both sync.WaitGroup
		both.Go(func() { d.nemesis.run(ctx) })
		if c.cfg.For > 0 && c.cfg.Rounds == 0 {
			both.Go(func() { pause(ctx, c.cfg.For) })
		}
		both.Wait()
	}()
	var err error
	select {
	case <-done:
	case err = <-c.failed:
		cancel()
		<-done
	}
	return err
}

func (d *demo) beginLoad(l *load, p *prober) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.load, d.prober, d.begin = l, p, time.Now()
}

func (d *demo) endLoad() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lasted = time.Since(d.begin)
}

// elapsed is for how long callers have gone on.
func (d *demo) elapsed() time.Duration {
	switch {
	case d.load == nil:
		return 0
	case d.lasted > 0:
		return d.lasted
	}
	return time.Since(d.begin)
}

// report is what is known so far.
func (d *demo) report() Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	var r Report
	var c counts
	var p pace
	var a absence
	if d.prober != nil {
		a = d.prober.absence()
	}
	if d.load != nil {
		c, p = d.load.counts(), d.load.tally.overall(d.elapsed())
	}
	r.Seconds = d.elapsed().Seconds()
	cfg := &d.cluster.cfg
	r.Store, r.Keys, r.ValueSize, r.Rolling, r.TLS = cfg.Store, cfg.Users, cfg.ValueSize, cfg.Rolling, cfg.TLS
	if r.outage = cfg.Outage; r.outage > 0 {
		r.ByOutage = c.losses
	}
	r.fill(c, p, d.nemesis.done(), d.cluster.oracle.Judge())
	ranges, share := d.cluster.moved.so()
	r.fillMoves(ranges, share, a)
	return r
}

// show tells the watcher, until the context ends.
func (d *demo) show(ctx context.Context) {
	for pause(ctx, observeEvery) {
		d.watch(d.snapshot())
	}
}

func (d *demo) snapshot() Snapshot {
	s := Snapshot{Of: d.cluster.cfg.For, Report: d.report()}
	d.observer.fill(&s)
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Elapsed = d.elapsed()
	if d.load != nil {
		p := d.load.tally.lately()
		s.PerSecond, s.Median, s.Slow = p.perSecond, p.median, p.slow
	}
	return s
}
