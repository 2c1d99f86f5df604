package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	// pollEvery is the time between two requests of a wait. Each costs the leader a moment.
	pollEvery = 500 * time.Millisecond
	// maxOutage is how long a wait continues without a responding manager: an election takes seconds.
	maxOutage = time.Minute
)

// Progress is how far an order is.
type Progress struct {
	Share float64 // done, 0 to 1
	Moves int     // in progress or waiting
	Left  float64 // share of the key space that is not moved yet
	// Gone: the owner that is drained has left, and its leases are about to end.
	Gone bool
}

// wait calls poll until it is done, fails, or the context ends. While no manager answers, it goes on
// for up to a minute. Report, if not nil, is called after each poll, with the error if no manager answers.
func (c *Client) wait(
	ctx context.Context, report func(Progress, error),
	poll func(context.Context, service) (Progress, bool, error),
) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last Progress
	for answered := time.Now(); ; {
		now, done := last, false
		err := c.Do(ctx, func(ctx context.Context, s service) (err error) {
			now, done, err = poll(ctx, s)
			return err
		})
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			last, answered = now, time.Now()
		case ctx.Err() != nil:
			return ctx.Err()
		case !Retriable(err) || time.Since(answered) > maxOutage:
			return err
		}
		if report != nil {
			report(last, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// watchPause is the delay before the next attempt after a broken stream.
const watchPause = 500 * time.Millisecond

// Watch returns events as they happen, of one namespace or of all if it is "", until the context
// ends or the loop does, beginning with the next one. If the stream breaks, it follows another manager;
// an event of the type EventGap means that events may be missing. The error is nil in all pairs but the
// last, which has the cause of the end: that of the context, or the error of the manager.
func (c *Client) Watch(ctx context.Context, namespace string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the stream if the loop ended first
		w := watcher{client: c, namespace: namespace, yield: yield}
		if err := w.run(ctx); err != nil {
			yield(Event{}, err)
		}
	}
}

type watcher struct {
	client    *Client
	namespace string
	yield     func(Event, error) bool

	connected bool // to a manager, at least once
	inGap     bool // a gap was reported, and no event since
	stopped   bool // by the consumer
}

func (w *watcher) run(ctx context.Context) error {
	for {
		err := w.client.Do(ctx, func(bounded context.Context, s service) error {
			// The stream has no deadline, but the status request does.
			if _, err := s.GetStatus(bounded, &leaseholdv1.GetStatusRequest{Version: wire.Version}); err != nil {
				return err
			}
			w.connected, w.inGap = true, false
			return final{w.follow(ctx, s)}
		})
		if w.stopped {
			return nil //nolint:nilerr // the consumer has ended it
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !w.connected || !Retriable(err) && !errors.Is(err, io.EOF) {
			return err
		}
		if !w.inGap && !w.yield(Event{At: time.Now(), Type: EventGap, Text: gapText(err)}, nil) {
			return nil
		}
		w.inGap = true
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchPause):
		}
	}
}

func gapText(err error) string {
	if errors.Is(err, io.EOF) {
		err = errors.New("the manager ended the stream")
	}
	return fmt.Sprintf("the connection to the manager broke, and events may be missing: %v", err)
}

// follow yields the events of one stream. It returns io.EOF if the manager ended it.
func (w *watcher) follow(ctx context.Context, s service) error {
	stream, err := s.Watch(ctx, &leaseholdv1.WatchRequest{Version: wire.Version, Namespace: w.namespace})
	if err != nil {
		return wire.ToError(err)
	}
	for {
		event, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return err
		case err != nil:
			return wire.ToError(err)
		}
		if !w.yield(EventOf(event), nil) {
			w.stopped = true
			return nil
		}
	}
}
