package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// rounds is how many changes are followed.
const rounds = 20

// fanOut measures how long a change takes to reach many lookups. They are in a
// process of their own, as callers are.
func fanOut(ctx context.Context, s *system, lookups, conns int) error {
	if err := s.create(ctx, "fanout"); err != nil {
		return err
	}
	first, err := join(ctx, s, 0)
	if err != nil {
		return err
	}
	joined := []*owner.Owner{first}
	defer func() {
		for _, o := range joined {
			closeNow(ctx, o)
		}
	}()
	heard, stop, err := startFollowers(ctx, s.addr, lookups, conns)
	if err != nil {
		return err
	}
	defer stop()
	var all, worst []time.Duration
	for round := 1; round <= rounds; round++ {
		o, err := join(ctx, s, round)
		if err != nil {
			return err
		}
		joined = append(joined, o)
		times, err := collect(ctx, s, heard, lookups)
		if err != nil {
			return err
		}
		slices.Sort(times)
		worst = append(worst, at(times, 0.99))
		all = append(all, times...)
	}
	slices.Sort(all)
	slices.Sort(worst)
	fmt.Printf("fan-out    %d changes reached %d lookups over %d connections, after their commit, in p50 %v, p99 %v, at most %v (wanted: p99 300ms)\n",
		rounds, lookups, conns, at(all, 0.5), at(all, 0.99), at(all, 1))
	fmt.Printf("fan-out    the p99 of a change was %v in the median, %v in the worst round\n", at(worst, 0.5), at(worst, 1))
	return nil
}

// at returns a quantile of sorted times.
func at(sorted []time.Duration, p float64) time.Duration {
	return sorted[int(p*float64(len(sorted)-1))].Round(time.Millisecond / 10)
}

func join(ctx context.Context, s *system, i int) (*owner.Owner, error) {
	return owner.Join(ctx, owner.Config{
		Namespace: "fanout", Managers: []string{s.addr}, Name: leasehold.OwnerID(fmt.Sprintf("o%d", i)), Addr: fmt.Sprintf("10.1.0.%d:80", i+1),
	})
}

func closeNow(ctx context.Context, o *owner.Owner) {
	closing, cancel := context.WithCancel(ctx)
	cancel()
	_ = o.Close(closing)
}

// An arrival is a lookup hearing of a change, on the wall clock that all
// processes of a computer share.
type arrival struct {
	lsn uint64
	at  time.Time
}

// startFollowers starts the lookups and waits until all have a table.
func startFollowers(ctx context.Context, addr string, lookups, conns int) (<-chan arrival, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	child := exec.CommandContext(ctx, self, "-follow", addr, fmt.Sprintf("-lookups=%d", lookups), fmt.Sprintf("-conns=%d", conns))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	in, err := child.StdinPipe() // when it closes, the child ends
	if err != nil {
		return nil, nil, err
	}
	if err := child.Start(); err != nil {
		return nil, nil, err
	}
	heard := make(chan arrival, 1<<16)
	ready := make(chan struct{})
	go func() {
		defer close(heard)
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			close(ready)
		}
		for lines.Scan() {
			var (
				a     arrival
				nanos int64
			)
			if _, err := fmt.Sscan(lines.Text(), &a.lsn, &nanos); err == nil {
				a.at = time.Unix(0, nanos)
				heard <- a
			}
		}
	}()
	stop := func() {
		_ = in.Close()
		for range heard { // until its output ends
		}
		_ = child.Wait()
	}
	select {
	case <-ready:
		return heard, stop, nil
	case <-time.After(time.Minute):
		stop()
		return nil, nil, errors.New("the lookups did not get their tables within a minute")
	}
}

// collect waits until every lookup has heard of the next change, drains what
// follows, and returns how long after its commit each heard of it.
func collect(ctx context.Context, s *system, heard <-chan arrival, lookups int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, lookups)
	var first uint64
	for len(times) < lookups {
		select {
		case a := <-heard:
			if first == 0 {
				first = a.lsn
			}
			if a.lsn != first {
				continue // the next change, which is not measured
			}
			committed, ok := s.store.committed.Load(commit{"fanout", a.lsn})
			if !ok {
				return nil, fmt.Errorf("a lookup heard of change %d, which was not committed", a.lsn)
			}
			times = append(times, a.at.Sub(committed.(time.Time)))
		case <-time.After(30 * time.Second):
			return nil, errors.New("a lookup heard nothing for 30 s")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for { // until the table is quiet again
		select {
		case <-heard:
		case <-time.After(time.Second):
			return times, nil
		}
	}
}
