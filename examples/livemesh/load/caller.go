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

// A caller has its own users, which no other caller changes. It runs one operation at a time.
type caller struct {
	load   *Load
	on     *im.Publisher
	api    *im.Client
	random *rand.Rand

	names  []string
	status map[string]string // the expected status of each user
}

func newCaller(l *Load, on *im.Publisher, api *im.Client) *caller {
	random := rand.New(rand.NewPCG(l.cfg.Seed, uint64(len(l.callers))))
	return &caller{load: l, on: on, api: api, random: random, status: make(map[string]string)}
}

func (c *caller) signOn(ctx context.Context) error {
	for _, name := range c.names {
		if err := c.insert(ctx, name, "online"); err != nil {
			return err
		}
	}
	return nil
}

// run executes operations until the context ends. It fails if another session has taken over a
// user.
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
			return nil //nolint:nilerr // it was interrupted
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

// waitUntil waits until a time, and reports whether the context is still active.
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
	_, err := c.api.Get(ctx, c.load.names[c.random.IntN(len(c.load.names))])
	return err
}

func (c *caller) insert(ctx context.Context, name, status string) error {
	c.status[name] = status
	return c.on.Publish(ctx, name, im.Presence{Address: "sip:" + name + "@example.com", Status: status, IP: "10.0.0.1"})
}

// note counts an operation. Errors that the publisher retries are only counted; the loss of a
// user to another session is returned.
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

// look waits until all users have the presence that was published last.
func (c *caller) look(ctx context.Context) error {
	missing := slices.Clone(c.names)
	for {
		missing = slices.DeleteFunc(missing, func(name string) bool {
			p, err := c.api.Get(ctx, name)
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
