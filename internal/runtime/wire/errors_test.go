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

// Every kind arrives as itself, and looks right to those who know only gRPC.
func TestKindsCrossTheWire(t *testing.T) {
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
			t.Errorf("%v is %v, want %v", kind, got, code)
		}
		var got *leasehold.Error
		if !errors.As(wire.ToError(over), &got) {
			t.Fatalf("%v arrives as %T", kind, wire.ToError(over))
		}
		if got.Op != sent.Op || got.Kind != kind || got.Subject != sent.Subject || got.Error() != sent.Error() {
			t.Errorf("%#v arrives as %#v", sent, got)
		}
	}
}

// Who is not known and who may not differ for others, and not for us.
func TestStrangersAreDenied(t *testing.T) {
	over := wire.FromStranger(leasehold.Errorf("call", leasehold.ErrDenied, "Hold", "no certificate"))
	if got := status.Code(over); got != codes.Unauthenticated {
		t.Errorf("the code is %v", got)
	}
	if got := wire.ToError(over); leasehold.KindOf(got) != leasehold.ErrDenied || got.Error() != `call "Hold": no certificate` {
		t.Errorf("arrives as %v (%v)", got, leasehold.KindOf(got))
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
		{"not ours", io.ErrUnexpectedEOF, leasehold.Other, "unexpected EOF"},
		{"out of time", fmt.Errorf("store: %w", context.DeadlineExceeded), leasehold.ErrUnavailable, "store: context deadline exceeded"},
		{"given up", context.Canceled, leasehold.ErrUnavailable, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := wire.ToError(wire.FromError(c.err))
			if leasehold.KindOf(got) != c.kind || got.Error() != c.text {
				t.Errorf("arrives as %q (%v), want %q (%v)", got, leasehold.KindOf(got), c.text, c.kind)
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
			t.Errorf("%v does not pass through FromError: %v", code, passed)
		}
		got := wire.ToError(plain)
		if leasehold.KindOf(got) != kind || got.Error() != "because" {
			t.Errorf("%v is %q (%v), want %v", code, got, leasehold.KindOf(got), kind)
		}
		if status.Code(got) != code {
			t.Errorf("%v is out of reach: %v", code, status.Code(got))
		}
	}
}

// Whether we or the peer noticed that time was up, errors.Is finds it.
func TestContextErrorsStayInReach(t *testing.T) {
	for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
		for _, err := range []error{want, status.FromContextError(want).Err(), wire.FromError(want)} {
			got := wire.ToError(err)
			if !errors.Is(got, want) || leasehold.KindOf(got) != leasehold.ErrUnavailable {
				t.Errorf("%v becomes %v (%v)", err, got, leasehold.KindOf(got))
			}
		}
	}
	if errors.Is(wire.ToError(status.Error(codes.Canceled, "")), context.DeadlineExceeded) {
		t.Error("a cancelled call is out of time")
	}
}

func TestNoErrorAndOwnErrors(t *testing.T) {
	if wire.FromError(nil) != nil || wire.ToError(nil) != nil {
		t.Error("nil does not stay nil")
	}
	ours := leasehold.Errorf("op", leasehold.ErrLimit, "", "text")
	if got := wire.ToError(ours); got != ours { //nolint:errorlint // the very same
		t.Errorf("%v becomes %v", ours, got)
	}
}

// A manager that forwards a call hands on what the other said.
func TestForwardedErrors(t *testing.T) {
	first := wire.ToError(wire.FromError(leasehold.Errorf("create namespace", leasehold.ErrExists, "n", "it is there")))
	second := wire.ToError(wire.FromError(first))
	if second.Error() != first.Error() || leasehold.KindOf(second) != leasehold.ErrExists {
		t.Errorf("%v is handed on as %v (%v)", first, second, leasehold.KindOf(second))
	}
}

// Whatever is in an error, it fits into a message and into a header.
func TestErrorsAreBoundedText(t *testing.T) {
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
