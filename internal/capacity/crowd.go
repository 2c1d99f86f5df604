package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// namespace is the one that all are in.
const namespace leasehold.Namespace = "capacity"

// A crowd is the owners and lookups that are connected.
type crowd struct {
	manager string
	owners  []*owner.Owner
	lookups []*lookup.Lookup
}

// atATime is how many join at a time.
const atATime = 64

// grow connects more.
func (c *crowd) grow(ctx context.Context, to size) error {
	owners, err := many(to.owners-len(c.owners), func(i int) (*owner.Owner, error) {
		n := len(c.owners) + i
		return owner.Join(ctx, owner.Config{
			Namespace: namespace, Managers: []string{c.manager}, Name: leasehold.OwnerID(fmt.Sprintf("owner-%04d", n)), Addr: fmt.Sprintf("127.0.0.1:%d", 10_000+n),
		})
	})
	c.owners = append(c.owners, owners...)
	if err != nil {
		return err
	}
	lookups, err := many(to.lookups-len(c.lookups), func(int) (*lookup.Lookup, error) {
		return lookup.Open(ctx, lookup.Config{Namespace: namespace, Managers: []string{c.manager}})
	})
	c.lookups = append(c.lookups, lookups...)
	return err
}

// many makes n of something, some at a time, and returns those that came about.
func many[T any](n int, one func(int) (T, error)) (all []T, failure error) {
	var (
		mu      sync.Mutex
		making  sync.WaitGroup
		permits = make(chan struct{}, atATime)
	)
	for i := range n {
		permits <- struct{}{}
		making.Go(func() {
			defer func() { <-permits }()
			made, err := one(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
				return
			}
			all = append(all, made)
		})
	}
	making.Wait()
	return all, failure
}

// leave disconnects all, without a word.
func (c *crowd) leave() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var leaving sync.WaitGroup
	for _, o := range c.owners {
		leaving.Go(func() { _ = o.Close(ended) })
	}
	for _, l := range c.lookups {
		leaving.Go(func() { _ = l.Close() })
	}
	leaving.Wait()
}
