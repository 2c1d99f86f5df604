package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const (
	publisherCount = 4
	userCount      = 25                    // of each publisher
	operateEvery   = 80 * time.Millisecond // of each publisher: a low rate, which leaves the processors to the other processes
	longest        = 10 * time.Minute      // of an operation
)

// users are the test application of the PRS paper (section 7): frontends publish, change and read
// users, and publish lost users again. At the end every user must have the presence that was
// published last.
type users struct {
	callers []*caller

	stopCalling, stopServing context.CancelFunc
	calling, serving         sync.WaitGroup

	mu     sync.Mutex
	took   *hdrhistogram.Histogram // in microseconds, of successful operations
	result Presence
}

// A caller has its own users, which no other caller changes.
type caller struct {
	users  *users
	index  int
	lookup *lookup.Lookup
	on     *im.Publisher
	api    *im.Client
	random *rand.Rand
	status [userCount]string // the expected status of each user
}

func (d *demo) startPresence(ctx context.Context) (*users, error) {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	calling, stopCalling := context.WithCancel(serving)
	all := &users{stopCalling: stopCalling, stopServing: stopServing, took: hdrhistogram.New(1, longest.Microseconds(), 2)}
	for i := range publisherCount {
		l, err := lookup.Open(ctx, lookup.Config{Namespace: "im", Managers: d.fleet.Managers, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			all.stop()
			return nil, err
		}
		api := &im.Client{Client: d.client(i)}
		c := &caller{users: all, index: i, lookup: l, api: api, random: d.random(200 + i), on: im.NewPublisher(im.PublisherConfig{Client: api, Lookup: l})}
		all.callers = append(all.callers, c)
		all.serving.Go(func() { _ = c.on.Run(serving) }) // it fails only if the lookup is closed
		all.calling.Go(func() { c.run(calling) })
	}
	return all, nil
}

func (c *caller) name(user int) string { return fmt.Sprintf("user-%d-%d", c.index, user) }

// run publishes all users, and then changes and reads users until the context ends.
func (c *caller) run(ctx context.Context) {
	for user := range userCount {
		c.users.note(ctx, func() error { return c.publish(ctx, user, "online") })
	}
	for i := 0; proc.Pause(ctx, operateEvery); i++ {
		user := c.random.IntN(userCount)
		c.users.note(ctx, func() error {
			if c.random.IntN(2) == 0 {
				return c.publish(ctx, user, fmt.Sprint("busy ", i))
			}
			_, err := c.api.Get(ctx, c.name(user))
			return err
		})
	}
}

// publish publishes a user. If it fails the publisher retries it.
func (c *caller) publish(ctx context.Context, user int, status string) error {
	c.status[user] = status
	name := c.name(user)
	return c.on.Publish(ctx, name, im.Presence{Address: "sip:" + name + "@example.com", Status: status, IP: "10.0.0.1"})
}

// note counts an operation, unless the context has ended.
func (u *users) note(ctx context.Context, operate func() error) {
	began := time.Now()
	err := operate()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err == nil:
		_ = u.took.RecordValue(max(1, time.Since(began).Microseconds())) // requests have a shorter timeout
	case errors.Is(err, leasehold.ErrNotFound):
		u.result.Gaps++
	default:
		u.result.Errors++
	}
}

// end stops the operations, waits until all users have the presence that was published last, and
// returns the result.
func (u *users) end() Presence {
	defer u.stop()
	u.stopCalling()
	u.calling.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	r := &u.result
	for _, c := range u.callers {
		r.Absent += c.await(ctx)
		r.Users += userCount
		r.Republished += c.on.Stats().Republished
	}
	at := func(percent float64) float64 { return float64(u.took.ValueAtPercentile(percent)) / 1000 }
	r.Operations, r.P50, r.P99, r.Max = u.took.TotalCount(), at(50), at(99), at(100)
	return *r
}

// await returns the number of users that still do not have the expected presence when the context
// ends.
func (c *caller) await(ctx context.Context) int {
	absent := make([]int, userCount)
	for i := range absent {
		absent[i] = i
	}
	for {
		absent = slices.DeleteFunc(absent, func(user int) bool {
			p, err := c.api.Get(ctx, c.name(user))
			return err == nil && p.Status == c.status[user]
		})
		if len(absent) == 0 || !proc.Pause(ctx, 100*time.Millisecond) {
			return len(absent)
		}
	}
}

func (u *users) stop() {
	u.stopServing()
	u.calling.Wait()
	u.serving.Wait()
	for _, c := range u.callers {
		_ = c.lookup.Close(context.Background()) // never fails
	}
}
