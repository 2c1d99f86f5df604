package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// newcomers are owners that have just been started: all join at the same time, each
// over a connection of its own.
type newcomers struct {
	space
	owners int // that join; 0: as many as there are leases
}

// Acquire lets owners join, and waits until each has all its ranges. The namespace is
// there before.
func (g *newcomers) Acquire(ctx context.Context, n int, name string) (cast.Turn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cast.OrderLimit, errors.New("not all leases were granted in time"))
	defer cancel()
	owners := g.owners
	if owners == 0 {
		owners = n
	}
	if err := g.create(ctx, name, n, owners); err != nil {
		return cast.Turn{}, err
	}
	before, err := g.cpu()
	if err != nil {
		return cast.Turn{}, err
	}
	before += cast.CPUTime()
	a := arrivals{want: int64(n), all: make(chan struct{})}
	begin := time.Now()
	err = cast.Each(owners, func(i int) error { return g.join(ctx, g.owner(i), a.add) })
	if err == nil {
		select {
		case <-a.all:
		case <-ctx.Done():
			err = fmt.Errorf("%d of %d leases: %w", a.got.Load(), n, context.Cause(ctx))
		}
	}
	took := time.Since(begin)
	if err != nil {
		return cast.Turn{}, err
	}
	after, err := g.cpu()
	return cast.Turn{Leases: n, Took: took, CPU: after + cast.CPUTime() - before}, err
}

// arrivals counts leases.
type arrivals struct {
	want int64
	got  atomic.Int64
	all  chan struct{}
}

func (a *arrivals) add(leases []leasehold.Lease) {
	n := int64(len(leases))
	if got := a.got.Add(n); got >= a.want && got-n < a.want {
		close(a.all)
	}
}

// sharers are owners that share a few connections, as the clients of etcd do: a swarm
// lets one join after the other, and each stays.
type sharers struct {
	space
	limit time.Duration
	clock *clock.Clock
	lean  []*lean
}

// Acquire lets n owners join and be granted their range, or as many as there is time
// for.
func (g *sharers) Acquire(ctx context.Context, n int, name string) (cast.Turn, error) {
	if err := g.create(ctx, name, n, n); err != nil {
		return cast.Turn{}, err
	}
	return cast.Swarm{Servers: g.cpu, Limit: g.limit}.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		o, err := joinLean(g.clock, g.conns[client%len(g.conns)], name, resource)
		if err != nil {
			return err
		}
		g.mu.Lock()
		g.lean = append(g.lean, o)
		g.mu.Unlock()
		if err := o.await(ctx); err != nil {
			return fmt.Errorf("%s was granted nothing: %w", resource, err)
		}
		return nil
	})
}

// Release lets all leave, and deletes the namespace.
func (g *sharers) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cast.OrderLimit)
	defer cancel()
	joined := g.lean
	g.lean = nil
	return errors.Join(
		cast.Each(len(joined), func(i int) error { return joined[i].leave(ctx) }),
		g.space.Release(ctx))
}
