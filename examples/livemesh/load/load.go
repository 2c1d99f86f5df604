// Package load is the load generator of the presence service, after the test application of the
// PRS paper (section 7): frontends publish, change and read users, and publish lost users again.
// It measures latencies. At the end every user must have the presence that was published last.
package load

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// Config configures the load.
type Config struct {
	// Publishers are the configurations of the frontends' publishers. At least one is required.
	Publishers []im.PublisherConfig
	// Users and Callers are the numbers of users and of concurrent callers per publisher.
	Users, Callers int
	// Rate is the number of operations per second of all publishers; latencies are measured
	// from the scheduled time. With 0 each caller starts the next operation when the last
	// one has ended.
	Rate float64
	// Inserts, Updates and Reads are the relative frequencies of operations.
	Inserts, Updates, Reads int
	// Seed is the seed of the random choices.
	Seed uint64
}

// Default returns the default configuration.
func Default() Config { return Config{Users: 100, Callers: 4, Inserts: 1, Updates: 4, Reads: 5} }

// Validate returns an error that begins with the name of a field.
func (c *Config) Validate() error {
	if !(c.Rate >= 0) { // also rejects NaN
		return fmt.Errorf("rate is %v, want 0 or more", c.Rate)
	}
	for _, field := range []struct {
		name        string
		is, atLeast int
	}{
		{"callers", c.Callers, 1},
		{"users", c.Users, c.Callers}, // one per caller
		{"inserts", c.Inserts, 0},
		{"updates", c.Updates, 0},
		{"reads", c.Reads, 0},
	} {
		if field.is < field.atLeast {
			return fmt.Errorf("%s is %d, want %d or more", field.name, field.is, field.atLeast)
		}
	}
	if c.Inserts+c.Updates+c.Reads == 0 {
		return errors.New("inserts, updates and reads are all 0: want one of them above 0")
	}
	return nil
}

// A Load is a running load.
type Load struct {
	cfg        Config
	publishers []*im.Publisher
	callers    []*caller
	names      []string // of all users

	stop, end        context.CancelFunc // of callers and publishers
	calling, serving errgroup.Group
	began            time.Time

	mu     sync.Mutex
	took   [kinds]*hdrhistogram.Histogram // in microseconds, of successful operations
	result Report
}

const longest = 10 * time.Minute // of an operation

// newHistogram returns a histogram with two significant digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 2)
}

// Start publishes all users, and then starts the operations, which continue until Finish. Finish
// must be called if Start has succeeded. The context is only for publishing the users.
func Start(ctx context.Context, cfg Config) (*Load, error) {
	if err := cfg.Validate(); err != nil {
		return nil, leasehold.Errorf("load", leasehold.ErrInvalid, "", "%w", err)
	}
	l := &Load{cfg: cfg}
	for i := range l.took {
		l.took[i] = newHistogram()
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	calling, stop := context.WithCancel(serving)
	l.stop, l.end = stop, end
	err := l.open(serving)
	if err == nil {
		err = l.each(ctx, (*caller).signOn)
	}
	if err != nil {
		stop()
		end()
		_ = l.serving.Wait() // the first error is returned
		return nil, err
	}
	l.began = time.Now()
	for _, c := range l.callers {
		l.calling.Go(func() error { return c.run(calling) })
	}
	return l, nil
}

// open creates publishers, and callers that share their users.
func (l *Load) open(ctx context.Context) error {
	run := rand.Text()[:8] // unique users per run
	for i, publisher := range l.cfg.Publishers {
		p, err := im.NewPublisher(publisher)
		if err != nil {
			return err
		}
		l.publishers = append(l.publishers, p)
		l.serving.Go(func() error { return p.Run(ctx) })
		first := len(l.callers)
		for range l.cfg.Callers {
			l.callers = append(l.callers, newCaller(l, p, publisher.Client))
		}
		for j := range l.cfg.Users {
			name := fmt.Sprintf("load-%s-%d-%d", run, i, j)
			l.names = append(l.names, name)
			c := l.callers[first+j%l.cfg.Callers]
			c.names = append(c.names, name)
		}
	}
	return nil
}

func (l *Load) each(ctx context.Context, do func(*caller, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range l.callers {
		group.Go(func() error { return do(c, ctx) })
	}
	return group.Wait()
}

// Finish stops the operations, waits until all users have the presence that was published last
// or the context ends, and withdraws them. It fails if the load ended with an error before.
func (l *Load) Finish(ctx context.Context) (*Report, error) {
	l.stop()
	err := l.calling.Wait()
	r := l.report()
	absent := l.each(ctx, (*caller).look)
	for _, p := range l.publishers {
		r.Republished += p.Stats().Republished
	}
	if absent == nil {
		_ = l.each(ctx, (*caller).signOff) // the rest expire
	}
	l.end()
	if failed := l.serving.Wait(); err == nil {
		err = failed
	}
	return r, err
}

// Open returns the configurations of n publishers with a number of callers each: through
// frontends if there are any, or directly to the servers. closeAll closes their lookups.
func Open(ctx context.Context, managers, frontends []string, n, callers int) (all []im.PublisherConfig, closeAll func(), err error) {
	closeAll = func() {
		for _, p := range all {
			_ = p.Lookup.Close(context.Background()) // never fails
		}
	}
	for i := range n {
		p, err := open(ctx, managers)
		if err == nil && len(frontends) > 0 {
			p.Client.Client, err = frontend.Client(frontends[i%len(frontends)], callers)
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all = append(all, p)
	}
	return all, closeAll, nil
}

// open returns the configuration of a publisher that connects to the servers directly.
func open(ctx context.Context, managers []string) (p im.PublisherConfig, err error) {
	const namespace = "im"
	p.Lookup, err = lookup.Open(ctx, lookup.Config{Namespace: namespace, Managers: managers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return p, err
	}
	client, err := jsonhttp.NewClient(p.Lookup, namespace, nil, time.Minute)
	p.Client = &im.Client{Client: client}
	return p, err
}

// A Pace is the number and the latencies, in milliseconds, of successful operations.
type Pace struct {
	Operations int64   `json:"operations"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
}

// A Report is the result of a load.
type Report struct {
	Seconds     float64 `json:"seconds"`
	Publishers  int     `json:"publishers"`
	Users       int     `json:"users"`
	PerSecond   float64 `json:"operations_per_second"` // successful ones
	All         Pace    `json:"all"`
	Inserts     Pace    `json:"inserts"`
	Updates     Pace    `json:"updates"`
	Reads       Pace    `json:"reads"`
	Errors      int     `json:"errors"` // failed operations; publishers retry them
	LastError   string  `json:"last_error,omitempty"`
	Gaps        int     `json:"reads_of_lost_users"`     // before they were published again
	Republished int     `json:"users_republished"`       // lost and published again
	Absent      int     `json:"users_absent_at_the_end"` // without the presence that was published last
}

func (l *Load) report() *Report {
	took := time.Since(l.began)
	all := newHistogram()
	for _, h := range l.took {
		all.Merge(h)
	}
	r := &l.result
	r.Seconds, r.Publishers, r.Users = took.Seconds(), len(l.publishers), len(l.names)
	r.All, r.Inserts, r.Updates, r.Reads = paceOf(all), paceOf(l.took[insert]), paceOf(l.took[update]), paceOf(l.took[read])
	r.PerSecond = float64(r.All.Operations) / took.Seconds()
	return r
}

func paceOf(h *hdrhistogram.Histogram) Pace {
	milliseconds := func(micros int64) float64 { return float64(micros) / 1000 }
	return Pace{h.TotalCount(), milliseconds(h.ValueAtPercentile(50)), milliseconds(h.ValueAtPercentile(99)), milliseconds(h.Max())}
}

// Err returns an error if users are absent.
func (r *Report) Err() error {
	if r.Absent == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d users do not have their published presence", r.Absent, r.Users)
}

// String returns the report in one line.
func (r *Report) String() string {
	there := "all"
	if r.Absent > 0 {
		there = fmt.Sprintf("%d of", r.Users-r.Absent)
	}
	text := fmt.Sprintf("%d operations of %d publishers, %.0f a second: half of them within %.2f ms, 99 %% within %.2f ms, the longest %.0f ms; %d failed, %d reads of lost users; %d users were lost and published again, and %s %d are there",
		r.All.Operations, r.Publishers, r.PerSecond, r.All.P50, r.All.P99, r.All.Max, r.Errors, r.Gaps, r.Republished, there, r.Users)
	if r.LastError != "" {
		text += fmt.Sprintf(" (one of the errors: %s)", r.LastError)
	}
	return text
}
