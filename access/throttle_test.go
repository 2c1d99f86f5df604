package access_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/access"
)

// timed makes calls sequentially and returns their total duration.
func timed(ctx context.Context, t *testing.T, calls int, conn grpc.ClientConnInterface) time.Duration {
	t.Helper()
	begun := time.Now()
	for range calls {
		if err := listOwners(ctx, conn, "sessions"); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begun)
}

// A connection that calls too fast is throttled. Other identities are not, nor is another
// connection of the same identity that makes few calls, nor a manager that forwards calls.
func TestFastCallersAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newGatedFixture(t, defaultFile, limited(access.Limits{Calls: 10, Burst: 1000}))
		const lookup = "spiffe://d/lookup/sessions"
		first, second, ann := d.as(lookup), d.as(lookup), d.as("spiffe://d/operator/ann")
		if took := timed(t.Context(), t, 22, first); took < 1500*time.Millisecond || took > 2*time.Second {
			t.Errorf("22 calls took %v", took)
		}
		if took := timed(t.Context(), t, 2, second); took > 0 {
			t.Errorf("two calls on another connection took %v", took)
		}
		if took := timed(t.Context(), t, 2, ann); took > 100*time.Millisecond {
			t.Errorf("two calls of another identity took %v", took)
		}
		forwarded := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", lookup)
		if took := timed(forwarded, t, 100, d.as("spiffe://d/manager/m1")); took > 0 {
			t.Errorf("a hundred forwarded calls took %v", took)
		}
		// A call waits for at most two seconds, however many calls precede it.
		if took := timed(t.Context(), t, 10, first); took < 2*time.Second || took > 20*time.Second {
			t.Errorf("after that, ten calls took %v", took)
		}
		// After a pause the burst is available again.
		time.Sleep(3 * time.Second)
		if took := timed(t.Context(), t, 8, d.as(lookup)); took > time.Second {
			t.Errorf("eight calls after a pause took %v", took)
		}
	})
}

// A connection with many denied calls is throttled, and then closed.
func TestDeniedCallersAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newGatedFixture(t, defaultFile)
		roleless, lookup := d.as("spiffe://d/nobody"), d.as("spiffe://d/lookup/sessions")
		begun := time.Now()
		for range 32 {
			wantCode(t, listOwners(t.Context(), roleless, "sessions"), codes.PermissionDenied)
		}
		if took := time.Since(begun); took != 1100*time.Millisecond {
			t.Errorf("32 denied calls took %v", took)
		}
		answers := make(chan codes.Code)
		for range 500 {
			go func() { answers <- status.Code(listOwners(t.Context(), roleless, "sessions")) }()
		}
		got := make(map[codes.Code]int)
		for range 500 {
			got[<-answers]++
		}
		if got[codes.PermissionDenied] < 100 || got[codes.PermissionDenied]+got[codes.Unavailable] != 500 {
			t.Errorf("500 concurrent calls return %v", got)
		}
		if took := timed(t.Context(), t, 2, lookup); took > 0 {
			t.Errorf("two calls of another identity took %v", took)
		}
		// A forged forwarding header does not help.
		forged := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
		other, since := d.as("spiffe://d/another"), time.Now()
		for range 32 {
			wantCode(t, listOwners(forged, other, "sessions"), codes.PermissionDenied)
		}
		if took := time.Since(since); took != 1100*time.Millisecond {
			t.Errorf("32 denied calls with a forged header took %v", took)
		}
		// A manager's connection carries the calls of many callers and is not throttled.
		forwarded := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/nobody")
		manager, begun := d.as("spiffe://d/manager/m1"), time.Now()
		for range 300 {
			wantCode(t, listOwners(forwarded, manager, "sessions"), codes.PermissionDenied)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("300 denied forwarded calls took %v", took)
		}
	})
}
