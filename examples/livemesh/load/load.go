// Package load drives the presence service as the test application of the PRS paper does
// (section 7): frontends publish users, change and read them, publish again who was lost, and
// measure how long that takes. At the end every user must be there as it was published last.
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

// Config says how much load there is.
type Config struct {
	// Publishers is required: how each reaches the servers, and learns of losses. They are
	// what frontends have.
	Publishers []im.PublisherConfig
	// Users are how many each publishes, and Callers how many requests it has under way at
	// a time.
	Users, Callers int
	// Rate is how many operations are due in a second, all publishers together; how long
	// one takes is counted from when it was due. With 0 the next one is due when the last
	// one has ended.
	Rate float64
	// Inserts, Updates and Reads are how often each is done, relative to the others.
	Inserts, Updates, Reads int
	// Seed decides who is asked about, and what.
	Seed uint64
}

// Default returns the default configuration.
func Default() Config { return Config{Users: 100, Callers: 4, Inserts: 1, Updates: 4, Reads: 5} }

// Validate returns an error that begins with the name of a field.
func (c *Config) Validate() error {
	if !(c.Rate >= 0) { // nor is it NaN
		return fmt.Errorf("rate is %v, want 0 or more", c.Rate)
	}
	for _, field := range []struct {
		name        string
		is, atLeast int
	}{
		{"callers", c.Callers, 1},
		{"users", c.Users, c.Callers}, // one for each
		{"inserts", c.Inserts, 0},
		{"updates", c.Updates, 0},
		{"reads", c.Reads, 0},
	} {
		if field.is < field.atLeast {
			return fmt.Errorf("%s is %d, want %d or more", field.name, field.is, field.atLeast)
		}
	}
	if c.Inserts+c.Updates+c.Reads == 0 {
		return errors.New("inserts, updates and reads are all 0: nothing is to be done")
	}
	return nil
}

// A Load is one run.
type Load struct {
	cfg        Config
	publishers []*im.Publisher
	callers    []*caller
	names      []string // of all users

	stop, end        context.CancelFunc // of callers, and of publishers
	calling, serving errgroup.Group
	began            time.Time

	mu     sync.Mutex
	took   [kinds]*hdrhistogram.Histogram // in microseconds, of operations that succeeded
	result Report
}

const longest = 10 * time.Minute // of an operation

// newHistogram keeps latencies to two digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 2)
}

// Start has all users published, and then begins. It goes on until Finish, which must be
// called if Start has succeeded; the context is only for the beginning.
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
		_ = l.serving.Wait() // what is wrong is known
		return nil, err
	}
	l.began = time.Now()
	for _, c := range l.callers {
		l.calling.Go(func() error { return c.run(calling) })
	}
	return l, nil
}

// open makes publishers, and callers who share out their users.
func (l *Load) open(ctx context.Context) error {
	run := rand.Text()[:8] // so that no other load has these users
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

// Finish ends the operations, waits until all users are there as they were published last, or
// the context ends, and has them withdrawn. It fails if it could not go on for as long as it
// was asked to.
func (l *Load) Finish(ctx context.Context) (*Report, error) {
	l.stop()
	err := l.calling.Wait()
	r := l.report()
	absent := l.each(ctx, (*caller).look)
	for _, p := range l.publishers {
		r.Republished += p.Stats().Republished
	}
	if absent == nil {
		_ = l.each(ctx, (*caller).signOff) // who is not will expire
	}
	l.end()
	if failed := l.serving.Wait(); err == nil {
		err = failed
	}
	return r, err
}

// Open returns n publishers for so many callers each: through frontends if there are any, or
// straight to the servers. What it returns last closes their lookups.
func Open(ctx context.Context, managers, frontends []string, n, callers int) (all []im.PublisherConfig, closeAll func(), err error) {
	closeAll = func() {
		for _, p := range all {
			_ = p.Lookup.Close(context.Background()) // it never fails
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

// open returns a publisher that finds the servers by itself.
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

// A Pace is how many operations succeeded, and how long they took, in milliseconds.
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
	PerSecond   float64 `json:"operations_per_second"` // that succeeded
	All         Pace    `json:"all"`
	Inserts     Pace    `json:"inserts"`
	Updates     Pace    `json:"updates"`
	Reads       Pace    `json:"reads"`
	Errors      int     `json:"errors"` // operations that failed; publishers retry theirs
	LastError   string  `json:"last_error,omitempty"`
	Gaps        int     `json:"reads_of_lost_users"`     // before they were published again
	Republished int     `json:"users_republished"`       // because they were lost
	Absent      int     `json:"users_absent_at_the_end"` // as they were published last
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
	return fmt.Errorf("%d of %d users are not there as they were published", r.Absent, r.Users)
}

// String is the report in a line.
func (r *Report) String() string {
	there := "all"
	if r.Absent > 0 {
		there = fmt.Sprintf("%d of", r.Users-r.Absent)
	}
	text := fmt.Sprintf("%d operations of %d publishers, %.0f a second: half of them within %.2f ms, 99 %% within %.2f ms, the longest %.0f ms; %d failed, %d found nobody; %d users were lost and published again, and %s %d are there",
		r.All.Operations, r.Publishers, r.PerSecond, r.All.P50, r.All.P99, r.All.Max, r.Errors, r.Gaps, r.Republished, there, r.Users)
	if r.LastError != "" {
		text += fmt.Sprintf(" (one of the errors: %s)", r.LastError)
	}
	return text
}
