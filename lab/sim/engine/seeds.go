package engine

import (
	"context"
	"iter"
	"sync"
)

// inOrder runs n simulations from the first seed on, at most parallel at a time,
// and yields their results in the order of their seeds. So whoever stops early
// stops at the same place however many run at a time. It ends early if ctx does.
// When it has ended nothing runs any more.
func inOrder[R any](ctx context.Context, first uint64, n, parallel int, run func(seed uint64) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		results := work(ctx, first, n, parallel, run)
		defer func() {
			cancel()
			for range results { // those that were under way
			}
		}()
		early := make(map[uint64]R)
		next := first
		for r := range results {
			early[r.seed] = r.of
			for {
				of, ok := early[next]
				if !ok {
					break
				}
				delete(early, next)
				next++
				if !yield(of) {
					return
				}
			}
		}
	}
}

type result[R any] struct {
	seed uint64
	of   R
}

// work runs simulations, and closes the channel when all have ended.
func work[R any](ctx context.Context, first uint64, n, parallel int, run func(uint64) R) <-chan result[R] {
	todo := make(chan uint64)
	results := make(chan result[R])
	go func() {
		defer close(todo)
		for i := range n {
			select {
			case todo <- first + uint64(i):
			case <-ctx.Done():
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for range max(parallel, 1) {
		workers.Go(func() {
			for seed := range todo {
				results <- result[R]{seed, run(seed)}
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	return results
}
