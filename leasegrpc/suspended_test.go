package leasegrpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A call that is not idempotent waits for a suspended lease until its deadline, and is executed
// once when the lease is resumed.
func TestCallsWaitForSuspendedLeases(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		calls := 0
		play(t, c.Node("a"), func(context.Context, string) (int64, error) { calls++; return int64(calls), nil })
		c.Settle()
		node := c.Node("caller")
		caller := dial(t, node, leasegrpc.Config{Methods: byField})
		once := dial(t, node, leasegrpc.Config{Methods: byField, Attempts: 1})
		c.KillManager("m1")
		c.Advance(20 * time.Second)

		_, err := once.add(patient(t), "alice")
		wantError(t, err, codes.Unavailable, leasehold.ErrSuspended)
		_, err = plain(t, node, "a").add(patient(t), "alice")
		if status.Code(err) != codes.Unavailable {
			t.Errorf("the server returned %v", err)
		}
		var info *errdetails.ErrorInfo
		for _, detail := range status.Convert(err).Details() {
			if i, ok := detail.(*errdetails.ErrorInfo); ok {
				info = i
			}
		}
		if info.GetDomain() != leasegrpc.Domain || info.GetReason() != "SUSPENDED" || info.GetMetadata()["key"] != leasehold.KeyOf("alice").String() {
			t.Errorf("the status has %v", info)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = caller.add(short, "alice")
		wantError(t, err, codes.DeadlineExceeded, leasehold.ErrSuspended)
		if !errors.Is(err, context.DeadlineExceeded) || calls > 0 {
			t.Errorf("%v, after %d calls of the handler", err, calls)
		}

		result := make(chan error, 1)
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { _, err := caller.add(long, "alice"); result <- err }()
		c.Advance(10 * time.Minute)
		c.StartManager("m1")
		if err := <-result; err != nil || calls != 1 {
			t.Errorf("%v, after %d calls of the handler", err, calls)
		}
	})
}

// A stream continues after a suspension: its context does not end, and later messages arrive.
func TestStreamOutlivesASuspension(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		goOn := make(chan struct{})
		n := c.Node("a")
		playWatch(t, n, func(stream grpc.ServerStream) error {
			<-goOn
			if err := stream.Context().Err(); err != nil {
				t.Errorf("the context ended: %v", context.Cause(stream.Context()))
			}
			return stream.SendMsg(wrapperspb.Int64(7))
		})
		c.Settle()
		w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}).watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		n.Cut()
		c.Advance(time.Minute)
		n.Heal()
		c.Settle()
		close(goOn)
		if got, err := w.next(); got != 7 || err != nil {
			t.Errorf("watched %d, %v", got, err)
		}
	})
}

// A handler's ErrSuspended, such as package leasemap's, is retried.
func TestHandlerErrorSuspendedIsRetried(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		calls := 0
		play(t, c.Node("a"), func(context.Context, string) (int64, error) {
			if calls++; calls < 3 {
				return 0, leasehold.Errorf("update", leasehold.ErrSuspended, "alice", "nothing was done")
			}
			return 1, nil
		})
		c.Settle()
		if _, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}).add(patient(t), "alice"); err != nil || calls != 3 {
			t.Errorf("%v, after %d calls", err, calls)
		}
	})
}
