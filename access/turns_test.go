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

// timed makes calls one after the other, and returns how long they take.
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

// Whoever calls too fast is served, and waits for its turn. Nobody else does: neither another
// identity, nor a connection of the same that makes a few calls. What a manager passes on keeps
// it from nothing.
func TestCallsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newGatedDesk(t, usualFile, limited(access.Limits{Calls: 10, Burst: 1000}))
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
		passes := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", lookup)
		if took := timed(passes, t, 100, d.as("spiffe://d/manager/m1")); took > 0 {
			t.Errorf("a hundred calls by way of a manager took %v", took)
		}
		// However many there were, it is two seconds for a call at most.
		if took := timed(t.Context(), t, 10, first); took < 2*time.Second || took > 20*time.Second {
			t.Errorf("after that, ten calls took %v", took)
		}
		// And as soon as they stop it is as if they had not been.
		time.Sleep(3 * time.Second)
		if took := timed(t.Context(), t, 8, d.as(lookup)); took > time.Second {
			t.Errorf("eight calls after a while took %v", took)
		}
	})
}

// Whoever is refused again and again waits, too, and then has to connect again.
func TestRefusedTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newGatedDesk(t, usualFile)
		roleless, lookup := d.as("spiffe://d/nobody"), d.as("spiffe://d/lookup/sessions")
		begun := time.Now()
		for range 32 {
			wantCode(t, listOwners(t.Context(), roleless, "sessions"), codes.PermissionDenied)
		}
		if took := time.Since(begun); took != 1100*time.Millisecond {
			t.Errorf("32 refusals took %v", took)
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
			t.Errorf("500 calls at once end with %v", got)
		}
		if took := timed(t.Context(), t, 2, lookup); took > 0 {
			t.Errorf("two calls of another identity took %v", took)
		}
		// To say that somebody else calls is of no use.
		pretends := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/operator/ann")
		other, since := d.as("spiffe://d/another"), time.Now()
		for range 32 {
			wantCode(t, listOwners(pretends, other, "sessions"), codes.PermissionDenied)
		}
		if took := time.Since(since); took != 1100*time.Millisecond {
			t.Errorf("32 refusals of somebody who is no manager took %v", took)
		}
		// A manager's connection is that of many.
		passes := metadata.AppendToOutgoingContext(t.Context(), "leasehold-caller", "spiffe://d/nobody")
		manager, begun := d.as("spiffe://d/manager/m1"), time.Now()
		for range 300 {
			wantCode(t, listOwners(passes, manager, "sessions"), codes.PermissionDenied)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("300 refusals by way of a manager took %v", took)
		}
	})
}
