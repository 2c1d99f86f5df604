package admin_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A local client returns the manager's responses and errors unchanged, and passes the caller's identity.
func TestLocal(t *testing.T) {
	unavailable := leasehold.Errorf("ask", leasehold.ErrUnavailable, "m2", "the leader does not answer")
	ended := make(chan string, 1)
	f := &fake{
		calls:  make(chan string, 10),
		owners: func() (*leaseholdv1.ListOwnersResponse, error) { return nil, wire.FromError(unavailable) },
		watch: func(s grpc.ServerStreamingServer[leaseholdv1.WatchResponse]) error {
			caller, _ := access.CallerFrom(s.Context())
			for s.Send(&leaseholdv1.WatchResponse{Namespace: "pool"}) == nil {
				continue
			}
			ended <- caller.String()
			return s.Context().Err()
		},
	}
	c := admin.NewLocal(f)
	ctx := access.WithCaller(t.Context(), access.Known("token:alice"))
	if s, err := c.Status(ctx); err != nil || s.Term != 1<<60 {
		t.Errorf("the status is %+v, %v", s, err)
	}
	if r, err := c.Ranges(ctx, "pool", ""); err != nil || r.LSN != 1 {
		t.Errorf("the ranges are %+v, %v", r, err)
	}
	var unreachable *admin.UnreachableError
	if _, err := c.Owners(ctx, "pool"); leasehold.KindOf(err) != leasehold.ErrUnavailable || errors.As(err, &unreachable) || err.Error() != unavailable.Error() {
		t.Errorf("the error is %q, want %q", err, unavailable)
	}
	if _, err := c.Members(ctx); err == nil {
		t.Error("a method that the service lacks does not fail")
	}
	seen := 0
	for e, err := range c.Watch(ctx, "pool") {
		if err != nil || e.Namespace != "pool" {
			t.Fatalf("event %+v, %v", e, err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if caller := <-ended; caller != "token:alice" { // the end of the loop cancels the stream
		t.Errorf("the manager saw %q", caller)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for e, err := range c.Watch(cancelled, "pool") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %+v, %v", e, err)
		}
	}
}
