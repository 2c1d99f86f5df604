// Package load drives the presence service as the test application of the PRS paper does
// (section 7): frontends publish users, change them and read them, publish again who was
// lost, and measure how long all that takes. At the end every user must be there as it was
// published last.
package load

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A Frontend is how one publisher reaches the servers, and learns of losses.
type Frontend struct {
	Client *im.Client
	Lookup *lookup.Lookup
}

// Config says how much load there is.
type Config struct {
	// Frontends is required. Each has a publisher of its own.
	Frontends []Frontend
	// Users are how many each frontend publishes, and Callers how many requests it has
	// under way at a time. Default 100 and 4.
	Users, Callers int
	// Rate is how many operations are due in a second, all frontends together; how long
	// one takes is counted from when it was due. Default 0: the next one is due when the
	// last one has ended.
	Rate float64
	// Inserts, Updates and Reads are how often each is done, relative to the others.
	// Default 1, 4 and 5.
	Inserts, Updates, Reads int
	// Seed decides who is asked about, and what.
	Seed uint64
	// Logger hears what publishers have to say. Default: nobody does.
	Logger *slog.Logger
}

func (c *Config) validate() error {
	if c.Users == 0 {
		c.Users = 100
	}
	if c.Callers == 0 {
		c.Callers = 4
	}
	if c.Inserts == 0 && c.Updates == 0 && c.Reads == 0 {
		c.Inserts, c.Updates, c.Reads = 1, 4, 5
	}
	if len(c.Frontends) == 0 || c.Callers < 1 || c.Users < c.Callers || c.Rate < 0 || min(c.Inserts, c.Updates, c.Reads) < 0 {
		return leasehold.Errorf("load", leasehold.Invalid, "", "want frontends, a caller or more, and a user or more for each, and nothing that is negative: %d, %d, %d", len(c.Frontends), c.Callers, c.Users)
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
}

// Start has all users published, and then begins. It goes on until Finish, which must be
// called if Start has succeeded; the context is only for the beginning.
func Start(ctx context.Context, cfg Config) (*Load, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Load{cfg: cfg}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	calling, stop := context.WithCancel(serving)
	l.stop, l.end = stop, end
	if err := l.open(serving); err != nil {
		return nil, l.abandon(err)
	}
	if err := l.each(ctx, (*caller).signOn); err != nil {
		return nil, l.abandon(err)
	}
	l.began = time.Now()
	for _, c := range l.callers {
		l.calling.Go(func() error { return c.run(calling) })
	}
	return l, nil
}

// open makes publishers, and callers who share out their users.
func (l *Load) open(ctx context.Context) error {
	run := rand.Text()[:8] // so that nobody else has these users
	for f, frontend := range l.cfg.Frontends {
		p, err := im.NewPublisher(im.PublisherConfig{Client: frontend.Client, Lookup: frontend.Lookup, Logger: l.cfg.Logger})
		if err != nil {
			return err
		}
		l.publishers = append(l.publishers, p)
		l.serving.Go(func() error { return p.Run(ctx) })
		first := len(l.callers)
		for range l.cfg.Callers {
			l.callers = append(l.callers, newCaller(l, p, frontend.Client))
		}
		for i := range l.cfg.Users {
			name := fmt.Sprintf("load-%s-%d-%d", run, f, i)
			l.names = append(l.names, name)
			l.callers[first+i%l.cfg.Callers].add(name)
		}
	}
	return nil
}

// each does something for all callers at once.
func (l *Load) each(ctx context.Context, do func(*caller, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range l.callers {
		group.Go(func() error { return do(c, ctx) })
	}
	return group.Wait()
}

func (l *Load) abandon(err error) error {
	l.stop()
	l.end()
	_ = l.serving.Wait() // what is wrong is known
	return err
}

// Finish ends the operations, waits until all users are there as they were published last, or
// the context ends, and has them withdrawn. It fails if it could not go on for as long as it
// was asked to.
func (l *Load) Finish(ctx context.Context) (*Report, error) {
	l.stop()
	err := l.calling.Wait()
	r := l.report(time.Since(l.began))
	absent := l.each(ctx, (*caller).look)
	for _, c := range l.callers {
		r.Absent += c.absent
	}
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
