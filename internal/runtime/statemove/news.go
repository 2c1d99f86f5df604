package statemove

import "context"

// news lets any number of goroutines wait until something has changed. It is
// used under a lock; only the waiting is done without.
type news chan struct{}

func (n *news) spread() {
	close(*n)
	*n = make(news)
}

// await waits for what was to be spread when the lock was held.
func (n news) await(ctx context.Context) error {
	select {
	case <-n:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
