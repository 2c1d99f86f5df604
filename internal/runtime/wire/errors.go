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

// codeOf returns the gRPC code of a kind, for generic clients and proxies. They retry an Unavailable call.
// After Aborted the caller must start over, here by looking up the key again.
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

// kindOf returns the kind of a status without detail: of gRPC itself, a proxy or another server.
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

// FromError returns err as a gRPC status for a handler to return. The status has an Error as its detail,
// from which [ToError] restores err at the peer. It returns nil, and a status without a kind, unchanged.
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

// FromStranger is FromError for an unauthenticated caller: the code is Unauthenticated instead of
// PermissionDenied. For [ToError] both are [leasehold.ErrDenied].
func FromStranger(err error) error { return fromError(codes.Unauthenticated, err) }

func fromError(code codes.Code, err error) error {
	s := status.New(code, clip(err.Error()))
	if detailed, failed := s.WithDetails(FromRefusal(err)); failed == nil {
		s = detailed
	}
	return s.Err()
}

// ToError returns the error of a gRPC call as a *[leasehold.Error]. It returns nil, and errors that wrap a
// *leasehold.Error, unchanged. errors.As and status.FromError find the status, errors.Is a deadline or a
// cancellation.
func ToError(err error) error {
	if err == nil {
		return nil
	}
	var inner *leasehold.Error
	if errors.As(err, &inner) {
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
	return &leasehold.Error{Kind: kindOf(s.Code()), Err: &remote{text: clip(reason(s.Message())), status: s}}
}

// FromRefusal returns err as a message, for a stream that stays open or the detail of a status.
func FromRefusal(err error) *leaseholdv1.Error {
	out := &leaseholdv1.Error{Kind: uint32(leasehold.KindOf(err))}
	if out.Kind == uint32(leasehold.Other) && contextError(err) != nil {
		out.Kind = uint32(leasehold.ErrUnavailable) // the server could not reply in time
	}
	inner, ok := err.(*leasehold.Error) //nolint:errorlint // wrapping errors are part of the message
	switch {
	case !ok && err != nil:
		out.Message = clip(err.Error())
	case ok:
		out.Op, out.Subject = clip(inner.Op), clip(inner.Subject)
		if inner.Err != nil {
			out.Message = clip(inner.Err.Error())
		}
	}
	return out
}

// contextError returns the context error for err, nil if there is none.
func contextError(err error) error {
	for _, ended := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, ended) {
			return ended
		}
	}
	return nil
}

// ToRefusal returns the error of a message as a *[leasehold.Error].
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

// A remote is the cause of an error of the peer.
type remote struct {
	text   string
	status *status.Status
}

func (r *remote) Error() string { return r.text }

// GRPCStatus returns the status for status.FromError.
func (r *remote) GRPCStatus() *status.Status { return r.status }

// Is makes an expired or cancelled call equal to the context error, whether the client or the server detects it.
func (r *remote) Is(target error) bool {
	return target == context.DeadlineExceeded && r.status.Code() == codes.DeadlineExceeded ||
		target == context.Canceled && r.status.Code() == codes.Canceled
}

// clip truncates an error text for logs and HTTP headers, and makes it valid UTF-8 for protobuf.
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
