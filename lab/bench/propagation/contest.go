package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A size is a number of listeners, and of the connections they share.
type size struct{ listeners, conns int }

func (s size) own() bool { return s.listeners == s.conns }

func (s size) String() string {
	if s.own() {
		return fmt.Sprintf("%s, a connection each", report.Thousands(float64(s.listeners)))
	}
	return fmt.Sprintf("%s over %d connections", report.Thousands(float64(s.listeners)), s.conns)
}

// few is the number of connections if listeners share them.
const few = 100

// sizes returns sizes from 100 to 50,000. Each connection needs an open file in the
// server. A size above the limit of open files is replaced by the limit.
func sizes(quick bool, files int) (all []size, short bool) {
	if quick {
		return []size{{1_000, 1_000}, {1_000, few}}, false
	}
	const most, spare = 50_000, 1_000
	last := min(most, files-spare)
	for _, n := range []int{100, 1_000, 10_000} {
		if n < last {
			all = append(all, size{n, n})
		}
	}
	all = append(all, size{last, last})
	for _, n := range []int{1_000, 10_000, most} {
		all = append(all, size{n, few})
	}
	return all, last < most
}

func files() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Max, 1<<20)) // the runtime raises the soft limit to that
}

type contestant struct {
	*service
	listeners proc.Group
	last      uint64 // number of its last change
}

// The maximum numbers of connections and streams of one process of listeners.
const (
	connsPerProcess   = 10_000
	streamsPerProcess = 25_000
)

// startContestant starts a service and its listeners, in as many processes as needed.
func startContestant(ctx context.Context, dir string, s size, e starter) (c *contestant, err error) {
	c = &contestant{}
	if c.service, err = e.start(ctx, dir, s); err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	c.name = e.name
	processes := max(1, (s.conns+connsPerProcess-1)/connsPerProcess, (s.listeners+streamsPerProcess-1)/streamsPerProcess)
	c.listeners, err = proc.StartGroup(ctx, roleListeners, processes, func(i int) any {
		return ListenersConfig{Addr: c.addr, Dialect: e.name, Streams: (s.listeners + i) / processes, Conns: (s.conns + i) / processes}
	})
	if err != nil {
		c.end()
		return nil, fmt.Errorf("%s, %v: %w", e.name, s, err)
	}
	return c, nil
}

func (c *contestant) end() {
	c.listeners.Close()
	c.close()
}

// maxTogether is the number of connections up to which the system has enough memory to
// run all services at the same time.
const maxTogether = 10_000

// concurrentStarters returns groups of services that run at the same time: all together,
// or one by one for sizes with too many connections for that.
func concurrentStarters(s size) (all [][]starter) {
	if s.conns <= maxTogether {
		return [][]starter{starters()}
	}
	for _, e := range starters() {
		all = append(all, []starter{e})
	}
	return all
}

// A turn is the duration of a change, in milliseconds, and its size.
type turn struct {
	half, last float64
	bytes      int
}

func (c *contestant) turn(ctx context.Context, bytes int) (t turn, err error) {
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if err != nil {
			err = fmt.Errorf("%s: %w", c.name, err)
		}
	}()
	if err := c.arm(c.last); err != nil {
		return t, err
	}
	made, err := c.change(ctx, bytes)
	if err != nil {
		return t, err
	}
	received, err := proc.CallAll[Received](c.listeners, "Wait", nil)
	if err != nil {
		return t, err
	}
	var times []int64
	for _, r := range received {
		if r.Number != made.Number {
			return t, fmt.Errorf("change %d was made, and %d was received", made.Number, r.Number)
		}
		times = append(times, r.Times...)
	}
	slices.Sort(times)
	after := func(at int64) float64 { return float64(time.Unix(0, at).Sub(made.Begin)) / float64(time.Millisecond) }
	t = turn{half: after(times[len(times)/2]), last: after(times[len(times)-1]), bytes: received[0].Bytes}
	return t, c.restore(made)
}

func (c *contestant) arm(number uint64) error {
	_, err := proc.CallAll[struct{}](c.listeners, "Arm", number)
	return err
}

// restore makes another change possible. If that takes a change itself, restore waits
// until all listeners received it, because it would disturb the next turn.
func (c *contestant) restore(made Change) (err error) {
	c.last = made.Number
	if c.undo == nil {
		return nil
	}
	if err := c.arm(made.Number); err != nil {
		return err
	}
	if c.last, err = c.undo(); err != nil {
		return err
	}
	_, err = proc.CallAll[Received](c.listeners, "Wait", nil)
	return err
}

type outcome struct {
	name       string
	half, last report.Summary
	halves     []float64 // until half of the listeners received the change, by turn, in milliseconds
	turns      []float64 // until the last listener received it
	bytes      int
}

// The time limit of a size, shared by its groups of services, which keeps the whole run
// within minutes, and the number of rounds that run even if they exceed it.
const (
	sizeLimit = 25 * time.Second
	minRounds = 3
)

// judged reports whether a size has goals. It gets more rounds and more time, so that
// other load on the machine has less influence on whether they are met.
func (s size) judged() bool { return s.own() && s.listeners == 10_000 }

func (s size) rounds(usual int) int {
	if s.judged() {
		return 4 * usual
	}
	return usual
}

func (s size) limit() time.Duration {
	if s.judged() {
		return 3 * sizeLimit
	}
	return sizeLimit
}

var errEnough = errors.New("there is no time for more rounds")

// contest gives all contestants a turn in each round, with changes of the given number
// of bytes. If that is 0, an extra turn measures the size of the lease table's changes
// first. After minRounds, no round starts once the time limit has passed.
func contest(ctx context.Context, all []*contestant, rounds, bytes int, limit time.Duration, step func(round int)) ([]outcome, error) {
	for _, c := range all {
		for range 2 { // the first determines how many bytes etcd adds to a value
			t, err := c.turn(ctx, bytes)
			if err != nil {
				return nil, err
			}
			if c.name == nameLeasehold {
				bytes = t.bytes
			}
			c.bytes += t.bytes - bytes
		}
	}
	outcomes := make([]outcome, len(all))
	began := time.Now()
	err := report.Rounds(ctx, rounds, len(all), func(round, i int) error {
		if first := i == round%len(all); first && round >= minRounds && time.Since(began) > limit {
			return errEnough
		}
		t, err := all[i].turn(ctx, bytes)
		if err != nil {
			return err
		}
		o := &outcomes[i]
		o.halves, o.turns, o.bytes = append(o.halves, t.half), append(o.turns, t.last), t.bytes
		return nil
	}, step)
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	for i, c := range all {
		o := &outcomes[i]
		o.name, o.half, o.last = c.name, report.Summarise(o.halves), report.Summarise(o.turns)
	}
	return outcomes, nil
}
