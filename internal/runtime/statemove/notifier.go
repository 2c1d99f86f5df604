package statemove

import "context"

// A notifier wakes all goroutines that wait for a change. Broadcast and reads of the channel happen under the mutex
// of the state that changes, wait without it.
type notifier chan struct{}

func (n *notifier) broadcast() {
	close(*n)
	*n = make(notifier)
}

// wait blocks until the first broadcast after the channel was read.
func (n notifier) wait(ctx context.Context) error {
	select {
	case <-n:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
