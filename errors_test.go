package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// Kinds are part of the wire protocol: peers of other versions rely on their numbers.
func TestKindsAreNeverRenumbered(t *testing.T) {
	names := make(map[string]leasehold.Kind)
	for number, want := range []struct {
		kind leasehold.Kind
		name string
	}{
		{leasehold.Other, "error"},
		{leasehold.ErrInvalid, "invalid"},
		{leasehold.ErrNotOwner, "not the owner"},
		{leasehold.ErrNoOwner, "no owner"},
		{leasehold.ErrNotLeader, "not the leader"},
		{leasehold.ErrNameTaken, "name taken"},
		{leasehold.ErrNotFound, "not found"},
		{leasehold.ErrExists, "exists"},
		{leasehold.ErrUnavailable, "unavailable"},
		{leasehold.ErrLimit, "limit reached"},
		{leasehold.ErrStale, "stale"},
		{leasehold.ErrClosed, "closed"},
		{leasehold.ErrInternal, "internal error"},
		{leasehold.ErrDenied, "not permitted"},
		{leasehold.ErrSuspended, "suspended"},
		{leasehold.ErrIndeterminate, "indeterminate"},
	} {
		if int(want.kind) != number || want.kind.Error() != want.name {
			t.Errorf("kind %d is %d, %q; want %q", number, want.kind, want.kind, want.name)
		}
		if other, taken := names[want.name]; taken {
			t.Errorf("kinds %d and %d have the same name %q", other, want.kind, want.name)
		}
		names[want.name] = want.kind
	}
	if got, want := leasehold.Kind(16).Error(), "kind(16)"; got != want {
		t.Errorf("got %q, want %q: a new kind needs a line in this test", got, want)
	}
}

func TestErrorText(t *testing.T) {
	for _, test := range []struct {
		err  leasehold.Error
		want string
	}{
		{leasehold.Error{}, "error"},
		{leasehold.Error{Kind: leasehold.ErrStale}, "stale"},
		{leasehold.Error{Err: io.EOF}, "EOF"},
		{leasehold.Error{Op: "join"}, "join: error"},
		{leasehold.Error{Op: "join", Kind: leasehold.ErrNameTaken}, "join: name taken"},
		{leasehold.Error{Subject: "web-1", Kind: leasehold.ErrNameTaken}, `"web-1": name taken`},
		{leasehold.Error{Subject: "a\nb", Err: io.EOF}, `"a\nb": EOF`},
		{leasehold.Error{Op: "join", Subject: "web-1", Kind: leasehold.ErrUnavailable, Err: io.EOF}, `join "web-1": EOF`},
		{
			leasehold.Error{Op: "join", Err: &leasehold.Error{Op: "dial", Subject: "host:1", Err: io.EOF}},
			`join: dial "host:1": EOF`,
		},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%#v reads %q, want %q", test.err, got, test.want)
		}
	}
}

func TestErrorf(t *testing.T) {
	err := leasehold.Errorf("open", leasehold.ErrUnavailable, "store", "read at %d: %w", 7, io.ErrUnexpectedEOF)
	if got, want := err.Error(), `open "store": read at 7: unexpected EOF`; got != want {
		t.Errorf("reads %q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("errors.Is of %v is wrong", err)
	}
}

// Errors of each form that the tests below wrap and join.
var (
	notOwner = &leasehold.Error{Op: "check", Kind: leasehold.ErrNotOwner}
	stale    = leasehold.Errorf("fence", leasehold.ErrStale, "row", "generation 41 is older than 43")
	open     = &leasehold.Error{Op: "serve", Err: notOwner} // without a kind
	errPlain = errors.New("plain")
	both     = &leasehold.Error{Op: "serve", Kind: leasehold.ErrUnavailable, Err: notOwner}
)

func TestKindOf(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want leasehold.Kind
	}{
		"nil":                         {nil, leasehold.Other},
		"foreign":                     {errPlain, leasehold.Other},
		"ours without a kind":         {&leasehold.Error{Op: "x"}, leasehold.Other},
		"ours":                        {notOwner, leasehold.ErrNotOwner},
		"a bare kind":                 {leasehold.ErrNotOwner, leasehold.ErrNotOwner},
		"a kind of a newer peer":      {&leasehold.Error{Kind: 200}, 200},
		"wrapped":                     {fmt.Errorf("x: %w", notOwner), leasehold.ErrNotOwner},
		"wrapped twice":               {fmt.Errorf("y: %w", fmt.Errorf("x: %w", notOwner)), leasehold.ErrNotOwner},
		"a wrapped bare kind":         {fmt.Errorf("x: %w", leasehold.ErrNotOwner), leasehold.ErrNotOwner},
		"two wrapped":                 {fmt.Errorf("%w, %w", errPlain, stale), leasehold.ErrStale},
		"joined":                      {errors.Join(errPlain, stale), leasehold.ErrStale},
		"joined, the left one wins":   {errors.Join(stale, notOwner), leasehold.ErrStale},
		"joined, no kind on the left": {errors.Join(&leasehold.Error{}, notOwner), leasehold.ErrNotOwner},
		"joined inside joined":        {errors.Join(errPlain, errors.Join(errPlain, notOwner), stale), leasehold.ErrNotOwner},
		"the outer kind wins":         {both, leasehold.ErrUnavailable},
		"no outer kind":               {open, leasehold.ErrNotOwner},
		"wrapping nothing":            {wrapsNil{}, leasehold.Other},
	} {
		if got := leasehold.KindOf(test.err); got != test.want {
			t.Errorf("%s: KindOf(%v) = %v, want %v", name, test.err, got, test.want)
		}
	}
}

type wrapsNil struct{}

func (wrapsNil) Error() string { return "wraps nil" }
func (wrapsNil) Unwrap() error { return nil }

func TestErrorsIsMatchesKindAndCause(t *testing.T) {
	for _, err := range []error{both, fmt.Errorf("x: %w", both), errors.Join(errPlain, both)} {
		for _, target := range []error{both, notOwner, leasehold.ErrUnavailable, leasehold.ErrNotOwner} {
			if !errors.Is(err, target) {
				t.Errorf("%v is not %v", err, target)
			}
		}
		if errors.Is(err, leasehold.ErrStale) || errors.Is(err, stale) {
			t.Errorf("%v is stale", err)
		}
	}
}

// An attempt that did nothing does not prove that an earlier one did nothing.
func TestIndeterminateHidesKindOfCause(t *testing.T) {
	cause := fmt.Errorf("%w: %w", context.Canceled, notOwner)
	err := fmt.Errorf("x: %w", leasehold.Errorf("do", leasehold.ErrIndeterminate, "", "%w", cause))
	for _, target := range []error{leasehold.ErrIndeterminate, context.Canceled, cause} {
		if !errors.Is(err, target) {
			t.Errorf("%v is not %v", err, target)
		}
	}
	if errors.Is(err, leasehold.ErrNotOwner) || leasehold.KindOf(err) != leasehold.ErrIndeterminate {
		t.Errorf("%v has kind %v, or the kind of its cause", err, leasehold.KindOf(err))
	}
}

func TestErrorsAs(t *testing.T) {
	err := errors.Join(errPlain, fmt.Errorf("x: %w", both))
	var e *leasehold.Error
	if !errors.As(err, &e) || e != both {
		t.Errorf("errors.As found %v, want the outermost %v", e, both)
	}
	var kind leasehold.Kind
	if !errors.As(err, &kind) || kind != leasehold.ErrUnavailable {
		t.Errorf("errors.As found kind %v, want %v", kind, leasehold.ErrUnavailable)
	}
}
