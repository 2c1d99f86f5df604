package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// admin is what commands ask.
type admin = leaseholdv1.AdminServiceClient

// ask lets call speak to a manager: to the first that answers, within the
// timeout. The managers share the time that is left evenly, so that one that
// accepts connections and then says nothing does not use up that of the
// others. The connection lives until call returns.
//
// If call fails because a manager is out of reach or has no leader, the next
// one is tried. So call must only read, or see to it that nothing is done
// twice: see [done].
func (c *client) ask(ctx context.Context, call func(context.Context, admin) error) error {
	end := time.Now().Add(c.timeout)
	var silent []string
	for i, addr := range c.managers {
		share := time.Until(end) / time.Duration(len(c.managers)-i)
		err := c.askOne(ctx, addr, share, call)
		var final done
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return statusInterrupted
		case errors.As(err, &final) || !elsewhere(err):
			return c.explain(err)
		}
		silent = append(silent, fmt.Sprintf("%s: %v", addr, err))
	}
	return c.unanswered(silent)
}

// done is an error that no other manager is to be asked about: what was asked
// for is no question.
type done struct{ error }

func (d done) Unwrap() error { return d.error }

// change asks for something to be done, once. That a manager is there at all
// is found out before, with a question: a change that got no answer may have
// been made, and is not asked for again. One for which there was no leader has not:
// there will be one soon, and it is waited for.
func (c *client) change(ctx context.Context, call func(context.Context, admin) error) error {
	return c.ask(ctx, func(ctx context.Context, to admin) error {
		if _, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version}); err != nil {
			return err
		}
		for {
			err := call(ctx, to)
			if leasehold.KindOf(wire.ToError(err)) != leasehold.NotLeader || !pause(ctx, leaderlessPause) {
				return onlyOnce(err)
			}
		}
	})
}

// leaderlessPause is how long to wait before a leader is asked for again.
const leaderlessPause = 200 * time.Millisecond

// pause waits, and reports whether to go on: not if the time is up by then.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, set := ctx.Deadline(); set && time.Until(deadline) < 2*d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func onlyOnce(err error) error {
	if err == nil {
		return nil
	}
	err = wire.ToError(err)
	if leasehold.KindOf(err) == leasehold.Unavailable {
		err = advised(err, "It may have been done all the same: look before you try again.")
	}
	return done{err}
}

// elsewhere reports whether another manager might do better.
func elsewhere(err error) bool {
	kind := leasehold.KindOf(err)
	return kind == leasehold.Unavailable || kind == leasehold.NotLeader
}

// askOne lets call speak to one manager for as long as its share of the time
// lasts, and returns its error as one of ours.
func (c *client) askOne(ctx context.Context, addr string, share time.Duration, call func(context.Context, admin) error) error {
	within, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	var d dialer
	conn, err := grpc.NewClient("passthrough:///"+addr, slices.Concat(wire.DialOptions(), c.security.showing(),
		[]grpc.DialOption{grpc.WithTransportCredentials(d.over(c.credentials)), grpc.WithContextDialer(d.dial)})...)
	if err != nil {
		return wire.ToError(err)
	}
	defer func() { _ = conn.Close() }() // whatever was on it has ended
	err = wire.ToError(call(within, leaseholdv1.NewAdminServiceClient(conn)))
	var final done
	switch {
	case err == nil || errors.As(err, &final) || leasehold.KindOf(err) != leasehold.Unavailable:
		return err
	case d.why() != nil:
		return &leasehold.Error{Kind: leasehold.Unavailable, Err: d.why()}
	case within.Err() != nil:
		return leasehold.Errorf("", leasehold.Unavailable, "", "no answer within %v", share.Round(time.Millisecond))
	}
	return err
}
