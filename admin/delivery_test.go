package admin

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
)

// An order without a response may have been executed, unless it was a dry run or a later manager has
// responded.
func TestOrdersWithoutResponseAreIndeterminate(t *testing.T) {
	unreachable := &UnreachableError{Reasons: []string{"m1: gone"}}
	for name, test := range map[string]struct {
		dryRun bool
		sent   error
		err    error
		want   leasehold.Kind
	}{
		"lost answer":      {false, status.Error(codes.Unavailable, "gone"), unreachable, leasehold.ErrIndeterminate},
		"time is up":       {false, status.Error(codes.DeadlineExceeded, "late"), context.DeadlineExceeded, leasehold.ErrIndeterminate},
		"dry run":          {true, status.Error(codes.Unavailable, "gone"), unreachable, leasehold.ErrUnavailable},
		"never sent":       {false, nil, unreachable, leasehold.ErrUnavailable},
		"refused":          {false, status.Error(codes.FailedPrecondition, "no leader"), unreachable, leasehold.ErrUnavailable},
		"answered at last": {false, status.Error(codes.Unavailable, "gone"), &LossError{}, leasehold.ErrInvalid},
		"done at last":     {false, status.Error(codes.Unavailable, "gone"), nil, leasehold.Other},
	} {
		var d delivery
		d.sent(test.dryRun, test.sent)
		if got := leasehold.KindOf(d.result(test.err)); got != test.want {
			t.Errorf("%s: kind %v, want %v", name, got, test.want)
		}
	}
}
