package etcd

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// translate gives etcd's errors a kind, and those that somebody can do
// something about a word about what.
func translate(err error) error {
	const op = "etcd"
	var known rpctypes.EtcdError
	switch {
	case err == nil || leasehold.KindOf(err) != leasehold.Other:
		return err
	case errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted):
		return fmt.Errorf("%w: %w", kv.ErrViewLost, err)
	case errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace):
		return leasehold.Errorf(op, leasehold.ErrLimit, "",
			"%w: its quota is used up; an embedded store goes on by itself once there is room, in a cluster compact, defragment and disarm the alarm, or raise the quota", err)
	case errors.As(rpctypes.Error(err), &known) && refusals[known.Code()]:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "%w: check user, password and the role's permission for the prefix", err)
	case refusals[status.Code(err)]:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return leasehold.Errorf(op, leasehold.ErrUnavailable, "", "no answer in time: %w", err)
	}
	return &leasehold.Error{Op: op, Kind: leasehold.ErrUnavailable, Err: err}
}

// refusals are codes that stay the same however often one asks.
var refusals = map[codes.Code]bool{
	codes.InvalidArgument: true, codes.PermissionDenied: true, codes.Unauthenticated: true,
}
