package engine

import (
	"context"
	"iter"
	"sync"
)

// inOrder runs n simulations from the first seed on, at most parallel at a time, and yields their results in
// the order of their seeds. So a caller that stops early stops at the same seed with any parallelism. It ends
// early if ctx ends. When it returns, no simulation is running.
func inOrder[R any](ctx context.Context, first uint64, n, parallel int, run func(seed uint64) R) iter.Seq[R] {
	type job struct {
		seed   uint64
		result chan R
	}
	return func(yield func(R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		parallel = max(parallel, 1)
		todo, started := make(chan job), make(chan job, 16*parallel) // a slow one does not block the others
		var running sync.WaitGroup
		for range parallel {
			running.Go(func() {
				for j := range todo {
					j.result <- run(j.seed)
				}
			})
		}
		running.Go(func() {
			defer close(todo)
			defer close(started)
			for i := range n {
				j := job{first + uint64(i), make(chan R, 1)}
				select {
				case todo <- j:
					started <- j
				case <-ctx.Done():
					return
				}
			}
		})
		defer running.Wait()
		defer func() {
			for range started { // unblocks the sender after ctx has ended
			}
		}()
		defer cancel()
		for j := range started {
			if !yield(<-j.result) {
				return
			}
		}
	}
}
