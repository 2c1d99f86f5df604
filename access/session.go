package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// A session is one call, from the tap to the end of its handler. A stream's
// messages are sent and received by different goroutines, and the policy looks at
// it from a third.
type session struct {
	policy     *Policy
	caller     Caller
	fullMethod string
	method     method

	refused error // a status: it was refused in the tap, and must not be handled
	budget  *budget
	rate    *rate.Limiter           // of a stream's messages; nil: as many as it likes
	cancel  context.CancelCauseFunc // ends the context of its handler
	abort   context.CancelCauseFunc // ends it for gRPC, whatever its handler does

	rights   atomic.Pointer[rights]
	decision atomic.Pointer[decision] // nil until a message has named a subject
	ending   sync.Once                // sets ended
	ended    atomic.Pointer[ending]   // nil until the policy has ended it
	passedOn atomic.Bool              // another manager answers, and writes it down
}

// An ending is why the policy has ended a stream, as a status, and when.
type ending struct {
	status error
	at     time.Time
}

type rights struct {
	book   *book
	grants []grant
}

// A decision is that a book permits the call to be about a subject.
type decision struct {
	book    *book
	subject subject
}

type sessionKey struct{}

func sessionFrom(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// direct reports whether the connection of a call is its caller's own, and not that of a
// manager that passes on the calls of many. Who says so and is no manager is not believed.
func (s *session) direct() bool {
	return len(s.caller.via) == 0 || !anyMeets(s.policy.book.Load().grants(s.caller.via), forManagers)
}

func (s *session) by(b *book) []grant {
	if r := s.rights.Load(); r != nil && r.book == b {
		return r.grants
	}
	grants := b.grants(s.caller.ids)
	s.rights.Store(&rights{b, grants})
	return grants
}

// admit decides whether the caller may call the method at all, about whatever.
func (s *session) admit(b *book) error {
	if s.method.need == forAnybody {
		return nil
	}
	if err := s.caller.verify(b, s.policy.cfg.Revoked, time.Now()); err != nil {
		return err
	}
	if len(s.caller.ids) == 0 {
		return strange("it takes a client certificate or a bearer token, and there was neither")
	}
	if len(s.caller.via) > 0 && !anyMeets(b.grants(s.caller.via), forManagers) {
		return denied(&Caller{ids: s.caller.via}, s.fullMethod, "is no manager, and only managers may pass on calls of others")
	}
	needed := s.method.need
	if needed == forNobody {
		needed = forAnyRole // gRPC says that there is no such method; if there is, the interceptor refuses it
	}
	if grants := s.by(b); !anyMeets(grants, needed) {
		return denied(&s.caller, s.fullMethod, whyRole(grants, s.method))
	}
	return nil
}

// authorize decides about a message. It costs two loads and a comparison if the
// message is about the same as the last one, and nothing has changed.
func (s *session) authorize(message any) error {
	if s.method.scope == nil {
		return s.still()
	}
	about, ok := s.method.scope(message)
	if !ok {
		return leasehold.Errorf(opCall, leasehold.ErrInternal, short(s.fullMethod), "%T is no request of this method", message)
	}
	b := s.policy.book.Load()
	if d := s.decision.Load(); d != nil && d.book == b && d.subject == about {
		return nil
	}
	return s.decide(b, about)
}

func (s *session) decide(b *book, about subject) error {
	if s.method.need == forAnybody {
		return nil
	}
	if err := s.admit(b); err != nil {
		return err
	}
	if why := permit(s.by(b), s.method, about); why != "" {
		return denied(&s.caller, s.fullMethod, why)
	}
	s.decision.Store(&decision{b, about})
	return nil
}

// still reports whether what was permitted is so by the book of now.
func (s *session) still() error {
	b := s.policy.book.Load()
	d := s.decision.Load()
	switch {
	case d != nil && d.book == b:
		return nil
	case d != nil:
		return s.decide(b, d.subject)
	case s.method.scope == nil:
		return s.decide(b, subject{})
	}
	return s.admit(b) // it has not said yet what it is about
}

// look is still for a stream that may be silent: time passes, and certificates are
// revoked.
func (s *session) look(now time.Time) error {
	if s.method.need == forAnybody {
		return nil
	}
	if err := s.caller.verify(s.policy.book.Load(), s.policy.cfg.Revoked, now); err != nil {
		return err
	}
	return s.still()
}

// sees reports whether the caller may read about a namespace, by the book of now.
func (s *session) sees(ns leasehold.Namespace) bool {
	return slices.ContainsFunc(s.by(s.policy.book.Load()), func(g grant) bool { return g.meets(toRead) && g.covers(ns) })
}

// end ends a stream, and returns the status that it ends with. Its handler sees its
// context end, and returns; then the caller hears why. A handler that waits for the
// caller does not see it: see force. Several may find at once that it must end; it is
// written down once, and before anybody hears of it.
func (s *session) end(why error) error {
	s.ending.Do(func() {
		s.ended.Store(&ending{s.policy.refuse(s, why), time.Now()})
		s.cancel(why)
	})
	return s.ended.Load().status
}

// force ends a stream whose handler has had time to end by itself. The caller hears
// from gRPC that it was cancelled, and why when it calls again.
func (s *session) force() {
	if s.abort != nil {
		s.abort(s.ended.Load().status)
	}
}

// verdict is what a call ends with: the policy's word goes before its handler's.
func (s *session) verdict(err error) error {
	if over := s.ended.Load(); over != nil {
		return over.status
	}
	return err
}

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

func toStatus(err error) error {
	if s := (stranger{}); errors.As(err, &s) {
		return wire.FromStranger(s.error)
	}
	return wire.FromError(err)
}

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
	want := rolesFor(m.need)
	if len(want) == 0 {
		return "may not: that method is for nobody"
	}
	return fmt.Sprintf("has the role %s, and that takes the role %s", some(have), some(want))
}

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
