package fenceetcd

import (
	"errors"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
)

// refusals are the codes of etcd's own errors that say that nothing was done.
// Errors of gRPC alone are none: a response that is too large for the client has
// been carried out.
var refusals = map[codes.Code]leasehold.Kind{
	codes.InvalidArgument:   leasehold.ErrInvalid,
	codes.OutOfRange:        leasehold.ErrInvalid,
	codes.PermissionDenied:  leasehold.ErrInvalid,
	codes.Unauthenticated:   leasehold.ErrInvalid,
	codes.NotFound:          leasehold.ErrNotFound, // the etcd lease of a put
	codes.ResourceExhausted: leasehold.ErrLimit,
}

// translate gives the error of the application's transaction a kind.
func translate(resource string, err error) error {
	kind, refused := kindOf(err)
	// The write that fills etcd up may be carried out, and gets this error like
	// those after it, which are not.
	if errors.Is(err, rpctypes.ErrNoSpace) || !refused {
		return leasehold.Errorf(token.Op, leasehold.ErrIndeterminate, resource, "it may have been written, or not: %w", err)
	}
	return leasehold.Errorf(token.Op, kind, resource, "nothing was written: %w", err)
}

// translateBefore gives an error a kind that came before that.
func translateBefore(resource string, err error) error {
	kind, _ := kindOf(err)
	return leasehold.Errorf(token.Op, kind, resource, "nothing was written: %w", err)
}

// kindOf returns the kind of an error of the client, and whether etcd has refused.
func kindOf(err error) (kind leasehold.Kind, refused bool) {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		if kind, refused = refusals[known.Code()]; refused {
			return kind, true
		}
	}
	return leasehold.ErrUnavailable, false
}
