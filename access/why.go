package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

const opCall = "call"

// A stranger is an error about who calls, not about what it may do.
type stranger struct{ error }

func (s stranger) Unwrap() error { return s.error }

func strange(format string, args ...any) error {
	return stranger{leasehold.Errorf(opCall, leasehold.ErrDenied, "", format, args...)}
}

// denied says that a caller may not call a method. What follows the caller's name
// says why.
func denied(c *Caller, fullMethod, why string) error {
	return leasehold.Errorf(opCall, leasehold.ErrDenied, short(fullMethod), "%s %s", c, why)
}

// toStatus makes of a refusal what goes over the wire.
func toStatus(err error) error {
	if s := (stranger{}); errors.As(err, &s) {
		return wire.FromStranger(s.error)
	}
	return wire.FromError(err)
}

// short is the name of a method without its service.
func short(fullMethod string) string {
	return clip(fullMethod[strings.LastIndexByte(fullMethod, '/')+1:])
}

// whyName tells an owner which names it may use. They are its own: it learns
// nothing about others.
func whyName(s subject, names []leasehold.OwnerID) string {
	return fmt.Sprintf("may not call itself %q in namespace %q, but %s: set the owner's name, or say in the access file which it may have", clip(string(s.owner)), clip(string(s.namespace)), some(names))
}

func whyNamespace(s subject) string {
	return fmt.Sprintf("may not do that in namespace %q: the managers' access file gives it no such role there", clip(string(s.namespace)))
}

// whyRole says what a caller is, and that it takes something else.
func whyRole(grants []grant, m method) string {
	if len(grants) == 0 {
		return "has no role in the managers' access file"
	}
	var have []role
	for _, g := range grants {
		if !slices.Contains(have, g.role) {
			have = append(have, g.role)
		}
	}
	if m.need == forGroup && slices.Contains(have, roleOperator) {
		return "is operator of some namespaces, and that takes an operator of all of them"
	}
	var want []role
	for _, r := range roles() {
		if r.meets(m.need) {
			want = append(want, r)
		}
	}
	if len(want) == 0 {
		return "may not: that method is for nobody"
	}
	return fmt.Sprintf("has the role %s, and that takes the role %s", some(have), some(want))
}

// some lists a few names.
func some[S ~string](all []S) string {
	const most = 8
	var text strings.Builder
	for i, s := range all[:min(most, len(all))] {
		switch {
		case i > 0 && i == len(all)-1:
			text.WriteString(" or ")
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(clip(string(s)))
	}
	if more := len(all) - most; more > 0 {
		fmt.Fprintf(&text, " or %d more", more)
	}
	return text.String()
}
