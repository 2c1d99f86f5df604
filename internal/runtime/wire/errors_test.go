package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Every kind survives encoding, and has the right gRPC code.
func TestKindsRoundTrip(t *testing.T) {
	for kind, code := range map[leasehold.Kind]codes.Code{
		leasehold.Other: codes.Unknown, leasehold.ErrInvalid: codes.InvalidArgument, leasehold.ErrNotOwner: codes.Aborted,
		leasehold.ErrNoOwner: codes.Unavailable, leasehold.ErrNotLeader: codes.Unavailable, leasehold.ErrNameTaken: codes.AlreadyExists,
		leasehold.ErrNotFound: codes.NotFound, leasehold.ErrExists: codes.AlreadyExists, leasehold.ErrUnavailable: codes.Unavailable,
		leasehold.ErrLimit: codes.ResourceExhausted, leasehold.ErrStale: codes.FailedPrecondition, leasehold.ErrClosed: codes.Canceled,
		leasehold.ErrInternal: codes.Internal, leasehold.ErrDenied: codes.PermissionDenied, leasehold.ErrSuspended: codes.Unavailable, 200: codes.Unknown,
	} {
		sent := &leasehold.Error{Op: "join", Kind: kind, Subject: "ann", Err: errors.New("of a reason")}
		over := wire.FromError(sent)
		if got := status.Code(over); got != code {
			t.Errorf("code of %v is %v, want %v", kind, got, code)
		}
		var got *leasehold.Error
		if !errors.As(wire.ToError(over), &got) {
			t.Fatalf("%v received as %T", kind, wire.ToError(over))
		}
		if got.Op != sent.Op || got.Kind != kind || got.Subject != sent.Subject || got.Error() != sent.Error() {
			t.Errorf("%#v received as %#v", sent, got)
		}
	}
}

// Unauthenticated callers get another code, and the same kind as unauthorized ones.
func TestUnauthenticatedIsDenied(t *testing.T) {
	over := wire.FromStranger(leasehold.Errorf("call", leasehold.ErrDenied, "Hold", "no certificate"))
	if got := status.Code(over); got != codes.Unauthenticated {
		t.Errorf("code %v", got)
	}
	if got := wire.ToError(over); leasehold.KindOf(got) != leasehold.ErrDenied || got.Error() != `call "Hold": no certificate` {
		t.Errorf("received as %v (%v)", got, leasehold.KindOf(got))
	}
}

func TestErrorsWithoutCauseOrOfOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		kind leasehold.Kind
		text string
	}{
		{"only a kind", leasehold.ErrNoOwner, leasehold.ErrNoOwner, "no owner"},
		{"no cause", &leasehold.Error{Op: "find", Kind: leasehold.ErrNotFound, Subject: "n"}, leasehold.ErrNotFound, `find "n": not found`},
		{"one in another", fmt.Errorf("while serving: %w", leasehold.Errorf("check", leasehold.ErrNotOwner, "k", "no")), leasehold.ErrNotOwner, `while serving: check "k": no`},
		{"another error", io.ErrUnexpectedEOF, leasehold.Other, "unexpected EOF"},
		{"out of time", fmt.Errorf("store: %w", context.DeadlineExceeded), leasehold.ErrUnavailable, "store: context deadline exceeded"},
		{"cancelled", context.Canceled, leasehold.ErrUnavailable, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := wire.ToError(wire.FromError(c.err))
			if leasehold.KindOf(got) != c.kind || got.Error() != c.text {
				t.Errorf("received as %q (%v), want %q (%v)", got, leasehold.KindOf(got), c.text, c.kind)
			}
		})
	}
}

func TestPlainStatuses(t *testing.T) {
	for code, kind := range map[codes.Code]leasehold.Kind{
		codes.Unavailable: leasehold.ErrUnavailable, codes.DeadlineExceeded: leasehold.ErrUnavailable, codes.Canceled: leasehold.ErrUnavailable,
		codes.InvalidArgument: leasehold.ErrInvalid, codes.Unimplemented: leasehold.ErrInvalid, codes.Unauthenticated: leasehold.ErrDenied,
		codes.PermissionDenied: leasehold.ErrDenied, codes.NotFound: leasehold.ErrNotFound, codes.AlreadyExists: leasehold.ErrExists,
		codes.ResourceExhausted: leasehold.ErrLimit, codes.Internal: leasehold.ErrInternal, codes.Unknown: leasehold.Other,
		codes.FailedPrecondition: leasehold.Other, 99: leasehold.Other,
	} {
		plain := status.Error(code, "because")
		if passed := wire.FromError(plain); passed != plain { //nolint:errorlint // the very same
			t.Errorf("%v is changed by FromError: %v", code, passed)
		}
		got := wire.ToError(plain)
		if leasehold.KindOf(got) != kind || got.Error() != "because" {
			t.Errorf("%v is %q (%v), want %v", code, got, leasehold.KindOf(got), kind)
		}
		if status.Code(got) != code {
			t.Errorf("%v is not found: %v", code, status.Code(got))
		}
	}
}

// errors.Is finds a context error of either side.
func TestContextErrorsAreFound(t *testing.T) {
	for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
		for _, err := range []error{want, status.FromContextError(want).Err(), wire.FromError(want)} {
			got := wire.ToError(err)
			if !errors.Is(got, want) || leasehold.KindOf(got) != leasehold.ErrUnavailable {
				t.Errorf("%v becomes %v (%v)", err, got, leasehold.KindOf(got))
			}
		}
	}
	if errors.Is(wire.ToError(status.Error(codes.Canceled, "")), context.DeadlineExceeded) {
		t.Error("a cancelled call is a deadline error")
	}
}

func TestNoErrorAndOwnErrors(t *testing.T) {
	if wire.FromError(nil) != nil || wire.ToError(nil) != nil {
		t.Error("nil is changed")
	}
	ours := leasehold.Errorf("op", leasehold.ErrLimit, "", "text")
	if got := wire.ToError(ours); got != ours { //nolint:errorlint // the very same
		t.Errorf("%v becomes %v", ours, got)
	}
}

// A manager that forwards a call returns the error of the other manager.
func TestForwardedErrors(t *testing.T) {
	first := wire.ToError(wire.FromError(leasehold.Errorf("create namespace", leasehold.ErrExists, "n", "it is there")))
	second := wire.ToError(wire.FromError(first))
	if second.Error() != first.Error() || leasehold.KindOf(second) != leasehold.ErrExists {
		t.Errorf("%v is forwarded as %v (%v)", first, second, leasehold.KindOf(second))
	}
}

// Any error fits into a message and into a header.
func TestErrorTextIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 10_000) + "\xff"
	m := wire.FromRefusal(&leasehold.Error{Op: long, Kind: leasehold.ErrInvalid, Subject: "\xff", Err: errors.New("\xff" + long)})
	for _, text := range []string{m.GetOp(), m.GetSubject(), m.GetMessage()} {
		if len(text) > 1100 || !utf8.ValidString(text) {
			t.Errorf("%d bytes, valid %t", len(text), utf8.ValidString(text))
		}
	}
	through(t, m) // would fail if it were not UTF-8
	got := wire.ToRefusal(&leaseholdv1.Error{Op: long, Subject: long, Message: long, Kind: 1 << 20})
	if len(got.Error()) > 4000 || leasehold.KindOf(got) != leasehold.Other {
		t.Errorf("%d bytes of kind %v", len(got.Error()), leasehold.KindOf(got))
	}
}

func TestRefusalRoundTrip(t *testing.T) {
	want := leasehold.Errorf("hold", leasehold.ErrNotFound, "n", "create it with: leasehold namespace create n")
	got := wire.ToRefusal(through(t, wire.FromRefusal(want)))
	if diff := cmp.Diff(want.Error(), got.Error()); diff != "" || !errors.Is(got, leasehold.ErrNotFound) {
		t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(got), diff)
	}
}
