package admin

import (
	"context"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	// pollEvery is the time between two requests of a wait. Each costs the leader a moment.
	pollEvery = 500 * time.Millisecond
	// maxOutage is how long a wait goes on while no manager answers: a new leader takes seconds.
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
	poll func(context.Context, leaseholdv1.AdminServiceClient) (Progress, bool, error),
) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last Progress
	for answered := time.Now(); ; {
		now, done := last, false
		err := c.Do(ctx, func(ctx context.Context, s leaseholdv1.AdminServiceClient) (err error) {
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
