package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
)

// The kinds of operations.
const (
	insert = iota
	update
	read
	kinds
)

// A caller has users of its own, whom nobody else changes, and one operation under way at a
// time.
type caller struct {
	load   *Load
	on     *im.Publisher
	asks   *im.Client
	random *rand.Rand

	names  []string
	status map[string]string // what each user is to have
}

func newCaller(l *Load, on *im.Publisher, asks *im.Client) *caller {
	random := rand.New(rand.NewPCG(l.cfg.Seed, uint64(len(l.callers))))
	return &caller{load: l, on: on, asks: asks, random: random, status: make(map[string]string)}
}

func (c *caller) signOn(ctx context.Context) error {
	for _, name := range c.names {
		if err := c.insert(ctx, name, "online"); err != nil {
			return err
		}
	}
	return nil
}

// run does one operation after the other until the context ends. It fails if the publisher
// has lost a user to somebody else.
func (c *caller) run(ctx context.Context) error {
	every := time.Duration(0)
	if c.load.cfg.Rate > 0 {
		every = time.Duration(float64(time.Second) * float64(len(c.load.callers)) / c.load.cfg.Rate)
	}
	due := time.Now()
	if every > 0 {
		due = due.Add(time.Duration(c.random.Int64N(int64(every)))) // not all at once
	}
	for i := 0; ; i++ {
		if !waitUntil(ctx, due) {
			return nil
		}
		kind := c.choose()
		err := c.operate(ctx, kind, fmt.Sprint("busy ", i))
		if ctx.Err() != nil {
			return nil //nolint:nilerr // whatever came of it: it was not to end
		}
		if err := c.load.note(kind, time.Since(due), err); err != nil {
			return err
		}
		due = due.Add(every)
		if every == 0 {
			due = time.Now()
		}
	}
}

// waitUntil reports whether the context has not ended by then.
func waitUntil(ctx context.Context, due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *caller) choose() int {
	cfg := &c.load.cfg
	switch n := c.random.IntN(cfg.Inserts + cfg.Updates + cfg.Reads); {
	case n < cfg.Inserts:
		return insert
	case n < cfg.Inserts+cfg.Updates:
		return update
	}
	return read
}

func (c *caller) operate(ctx context.Context, kind int, status string) error {
	name := c.names[c.random.IntN(len(c.names))]
	switch kind {
	case insert:
		return c.insert(ctx, name, status)
	case update:
		c.status[name] = status
		return c.on.Update(ctx, name, im.Change{Status: &status})
	}
	_, err := c.asks.Get(ctx, c.load.names[c.random.IntN(len(c.load.names))])
	return err
}

func (c *caller) insert(ctx context.Context, name, status string) error {
	c.status[name] = status
	return c.on.Publish(ctx, name, im.Presence{Address: "sip:" + name + "@example.com", Status: status, IP: "10.0.0.1"})
}

// note counts an operation. What the publisher goes on trying is only an error; a user who is
// not its own any more is one that it cannot go on with.
func (l *Load) note(kind int, took time.Duration, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		return l.took[kind].RecordValue(min(max(1, took.Microseconds()), longest.Microseconds()))
	case kind == read && errors.Is(err, leasehold.ErrNotFound):
		l.result.Gaps++
	case errors.Is(err, leasehold.ErrExists), errors.Is(err, leasehold.ErrNotFound), errors.Is(err, leasehold.ErrInvalid):
		return err
	default:
		l.result.Errors++
		l.result.LastError = err.Error()
	}
	return nil
}

// look waits until all users are there as they were published last.
func (c *caller) look(ctx context.Context) error {
	missing := slices.Clone(c.names)
	for {
		missing = slices.DeleteFunc(missing, func(name string) bool {
			p, err := c.asks.Get(ctx, name)
			return err == nil && p.Status == c.status[name]
		})
		if len(missing) == 0 {
			return nil
		}
		if !waitUntil(ctx, time.Now().Add(100*time.Millisecond)) {
			c.load.mu.Lock()
			defer c.load.mu.Unlock()
			c.load.result.Absent += len(missing)
			return ctx.Err()
		}
	}
}

func (c *caller) signOff(ctx context.Context) error {
	for _, name := range c.names {
		if err := c.on.Withdraw(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
