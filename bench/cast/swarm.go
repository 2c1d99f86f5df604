package cast

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Clients is how many ask a lock service at a time.
const Clients = 256

// A Swarm is the clients of a lock service. They share a batch: whoever is free
// takes the next name.
type Swarm struct {
	Servers func() (time.Duration, error) // what these have used of processors so far
	Limit   time.Duration                 // nobody begins anything new after that
}

// Run lets clients acquire leases on name-0, name-1 and so on until there are n,
// or until time is up. A turn that time ended has fewer leases and is as good.
func (s Swarm) Run(ctx context.Context, n int, name string, acquire func(ctx context.Context, client int, resource string) error) (Turn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit+OrderLimit, fmt.Errorf("a client got no answer in %v", OrderLimit))
	defer cancel()
	before, err := s.Servers()
	if err != nil {
		return Turn{}, err
	}
	before += CPUTime()
	var next, done atomic.Int64
	begin := time.Now()
	err = Each(Clients, func(client int) error {
		for time.Since(begin) < s.Limit {
			i := next.Add(1) - 1
			if i >= int64(n) {
				return nil
			}
			if err := acquire(ctx, client, fmt.Sprintf("%s-%06d", name, i)); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	took := time.Since(begin)
	if err != nil {
		return Turn{}, err
	}
	after, err := s.Servers()
	return Turn{Leases: int(done.Load()), Took: took, CPU: after + CPUTime() - before}, err
}

// Each calls do for 0 to n-1, all at the same time, and returns the first error.
func Each(n int, do func(i int) error) error {
	var all sync.WaitGroup
	var once sync.Once
	var first error
	for i := range n {
		all.Go(func() {
			if err := do(i); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	all.Wait()
	return first
}
