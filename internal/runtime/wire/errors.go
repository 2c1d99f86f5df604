package wire

import (
	"context"
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// codeOf says how a kind looks to whoever knows gRPC but not Leasehold.
// Generic clients retry a call that is Unavailable; one that is Aborted has to
// be begun anew, here by looking up the key again.
func codeOf(k leasehold.Kind) codes.Code {
	if code, ok := codesByKind[k]; ok {
		return code
	}
	return codes.Unknown
}

var codesByKind = map[leasehold.Kind]codes.Code{
	leasehold.ErrInvalid:       codes.InvalidArgument,
	leasehold.ErrNotOwner:      codes.Aborted,
	leasehold.ErrNoOwner:       codes.Unavailable,
	leasehold.ErrNotLeader:     codes.Unavailable,
	leasehold.ErrUnavailable:   codes.Unavailable,
	leasehold.ErrSuspended:     codes.Unavailable,
	leasehold.ErrIndeterminate: codes.Unavailable,
	leasehold.ErrNameTaken:     codes.AlreadyExists,
	leasehold.ErrExists:        codes.AlreadyExists,
	leasehold.ErrNotFound:      codes.NotFound,
	leasehold.ErrLimit:         codes.ResourceExhausted,
	leasehold.ErrStale:         codes.FailedPrecondition,
	leasehold.ErrClosed:        codes.Canceled,
	leasehold.ErrInternal:      codes.Internal,
	leasehold.ErrDenied:        codes.PermissionDenied,
}

// kindOf is the kind of a status that says nothing more: it comes from gRPC
// itself, a proxy, or a server that is not ours.
func kindOf(c codes.Code) leasehold.Kind {
	switch c {
	case codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented:
		return leasehold.ErrInvalid
	case codes.PermissionDenied, codes.Unauthenticated:
		return leasehold.ErrDenied
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		return leasehold.ErrUnavailable
	case codes.NotFound:
		return leasehold.ErrNotFound
	case codes.AlreadyExists:
		return leasehold.ErrExists
	case codes.ResourceExhausted:
		return leasehold.ErrLimit
	case codes.Internal, codes.DataLoss:
		return leasehold.ErrInternal
	default:
		return leasehold.Other
	}
}

// FromError returns err as a gRPC status for a handler to return. It has an
// Error as its detail, so that [ToError] gives the peer what we have here. What
// is a status without a kind, and nil, is returned as it is.
func FromError(err error) error {
	if err == nil {
		return nil
	}
	kind := leasehold.KindOf(err)
	if _, ok := status.FromError(err); ok && kind == leasehold.Other {
		return err
	}
	code := codeOf(kind)
	if given := status.FromContextError(contextError(err)).Code(); given != codes.OK {
		code = given
	}
	return fromError(code, err)
}

// FromStranger is FromError for who cannot be told who it is. To those who know
// gRPC that is another code than that of who is known, and may not; to us both
// are [leasehold.ErrDenied].
func FromStranger(err error) error { return fromError(codes.Unauthenticated, err) }

func fromError(code codes.Code, err error) error {
	s := status.New(code, clip(err.Error()))
	if detailed, failed := s.WithDetails(FromRefusal(err)); failed == nil {
		s = detailed
	}
	return s.Err()
}

// ToError returns what a gRPC call failed with as a *[leasehold.Error]. What has
// one in it already, and nil, is returned as it is. The status remains within reach of errors.As and status.FromError,
// and a deadline or a cancellation within that of errors.Is.
func ToError(err error) error {
	if err == nil {
		return nil
	}
	var ours *leasehold.Error
	if errors.As(err, &ours) {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return &leasehold.Error{Kind: kindOf(status.FromContextError(err).Code()), Err: err}
	}
	for _, detail := range s.Details() {
		if e, ok := detail.(*leaseholdv1.Error); ok {
			out := toError(e)
			if out.Err != nil {
				out.Err = &remote{text: out.Err.Error(), status: s}
			}
			return out
		}
	}
	return &leasehold.Error{Kind: kindOf(s.Code()), Err: &remote{text: clip(s.Message()), status: s}}
}

// FromRefusal returns err as a message, for a stream that goes on or a status's
// detail.
func FromRefusal(err error) *leaseholdv1.Error {
	out := &leaseholdv1.Error{Kind: uint32(leasehold.KindOf(err))}
	if out.Kind == uint32(leasehold.Other) && contextError(err) != nil {
		out.Kind = uint32(leasehold.ErrUnavailable) // whoever was asked could not answer in time
	}
	ours, ok := err.(*leasehold.Error) //nolint:errorlint // what is around ours belongs to the message
	switch {
	case !ok && err != nil:
		out.Message = clip(err.Error())
	case ok:
		out.Op, out.Subject = clip(ours.Op), clip(ours.Subject)
		if ours.Err != nil {
			out.Message = clip(ours.Err.Error())
		}
	}
	return out
}

// contextError returns the error of a context that err is about, nil if it is
// about none.
func contextError(err error) error {
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, ended) {
			return ended
		}
	}
	return nil
}

// ToRefusal returns the error that a message describes, as a
// *[leasehold.Error].
func ToRefusal(e *leaseholdv1.Error) error { return toError(e) }

func toError(e *leaseholdv1.Error) *leasehold.Error {
	out := &leasehold.Error{Op: clip(e.GetOp()), Subject: clip(e.GetSubject())}
	if e.GetKind() <= math.MaxUint8 {
		out.Kind = leasehold.Kind(e.GetKind())
	}
	if e.GetMessage() != "" {
		out.Err = errors.New(clip(e.GetMessage()))
	}
	return out
}

// A remote is the cause of an error that happened at the peer.
type remote struct {
	text   string
	status *status.Status
}

func (r *remote) Error() string { return r.text }

// GRPCStatus is what status.FromError looks for.
func (r *remote) GRPCStatus() *status.Status { return r.status }

// Is makes an expired or cancelled call look the same whoever noticed first.
func (r *remote) Is(target error) bool {
	return target == context.DeadlineExceeded && r.status.Code() == codes.DeadlineExceeded ||
		target == context.Canceled && r.status.Code() == codes.Canceled
}

// clip bounds a text of an error, which ends up in logs and in HTTP headers,
// and makes it the UTF-8 that protobuf asks for.
func clip(s string) string {
	const most = 1024
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}
