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

// A session is one call, from the tap to the end of its handler. A stream's messages are
// sent and received by different goroutines, and the policy checks it on a third.
type session struct {
	policy     *Policy
	caller     Caller
	fullMethod string
	method     method

	denied error // a status: the tap denied the call, and it must not be handled
	budget *budget
	rate   *rate.Limiter           // of a stream's messages; nil: unlimited
	cancel context.CancelCauseFunc // ends the context of its handler
	abort  context.CancelCauseFunc // ends the call for gRPC, even if its handler blocks

	rights    atomic.Pointer[rights]
	decision  atomic.Pointer[decision] // nil until a message has a subject
	ending    sync.Once                // sets ended
	ended     atomic.Pointer[ending]   // nil until the policy ends the call
	forwarded atomic.Bool              // another manager handles and audits it
}

// An ending is the status with which the policy ended a stream, and the time.
type ending struct {
	status error
	at     time.Time
}

type rights struct {
	ruleset *ruleset
	grants  []grant
}

// A decision is that a ruleset permits the call for a subject.
type decision struct {
	ruleset *ruleset
	subject subject
}

type sessionKey struct{}

func sessionFrom(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// direct reports whether the connection of a call is the caller's own. It is false if a
// manager forwarded the call; a forwarding header from another caller does not count.
func (s *session) direct() bool {
	return len(s.caller.via) == 0 || !anySatisfies(s.policy.ruleset.Load().grants(s.caller.via), managersOnly)
}

// grants returns the caller's grants in a ruleset. They are cached until it changes.
func (s *session) grants(b *ruleset) []grant {
	if r := s.rights.Load(); r != nil && r.ruleset == b {
		return r.grants
	}
	grants := b.grants(s.caller.ids)
	s.rights.Store(&rights{b, grants})
	return grants
}

// admit checks that the caller may call the method for some subject.
func (s *session) admit(b *ruleset) error {
	if s.method.need == public {
		return nil
	}
	if err := s.caller.verify(b, s.policy.cfg.Revoked, time.Now()); err != nil {
		return err
	}
	if len(s.caller.ids) == 0 {
		return unauthenticated("the call has neither a client certificate nor a bearer token")
	}
	if len(s.caller.via) > 0 && !anySatisfies(b.grants(s.caller.via), managersOnly) {
		return denied(&Caller{ids: s.caller.via}, s.fullMethod, "is not a manager: only managers may forward calls")
	}
	needed := s.method.need
	if needed == unlisted {
		needed = anyRole // gRPC returns Unimplemented, or the interceptor denies a method without a rule
	}
	if grants := s.grants(b); !anySatisfies(grants, needed) {
		return denied(&s.caller, s.fullMethod, roleDenied(grants, s.method))
	}
	return nil
}

// authorize checks the subject of a message. It costs two atomic loads and a comparison
// if neither the subject nor the ruleset has changed since the last message.
func (s *session) authorize(message any) error {
	if s.method.subjectOf == nil {
		return s.recheck()
	}
	about, ok := s.method.subjectOf(message)
	if !ok && s.method.firstOnly {
		return s.recheck()
	}
	if !ok {
		return leasehold.Errorf(opCall, leasehold.ErrInternal, short(s.fullMethod), "%T is not a request of this method", message)
	}
	b := s.policy.ruleset.Load()
	if d := s.decision.Load(); d != nil && d.ruleset == b && d.subject == about {
		return nil
	}
	return s.decide(b, about)
}

func (s *session) decide(b *ruleset, about subject) error {
	if s.method.need == public {
		return nil
	}
	if err := s.admit(b); err != nil {
		return err
	}
	if why := permit(s.grants(b), s.method, about); why != "" {
		return denied(&s.caller, s.fullMethod, why)
	}
	s.decision.Store(&decision{b, about})
	return nil
}

// recheck returns an error if the current ruleset does not permit the call.
func (s *session) recheck() error {
	b := s.policy.ruleset.Load()
	d := s.decision.Load()
	switch {
	case d != nil && d.ruleset == b:
		return nil
	case d != nil:
		return s.decide(b, d.subject)
	case s.method.subjectOf == nil:
		return s.decide(b, subject{})
	}
	return s.admit(b) // its first message has not arrived
}

// checkStream is recheck for a stream that may be idle: it also finds expired tokens and
// revoked certificates.
func (s *session) checkStream(now time.Time) error {
	if s.method.need == public {
		return nil
	}
	if err := s.caller.verify(s.policy.ruleset.Load(), s.policy.cfg.Revoked, now); err != nil {
		return err
	}
	return s.recheck()
}

// mayRead reports whether the current ruleset permits the caller to read a namespace.
func (s *session) mayRead(ns leasehold.Namespace) bool {
	return slices.ContainsFunc(s.grants(s.policy.ruleset.Load()), func(g grant) bool { return g.satisfies(readNamespace) && g.includes(ns) })
}

// end ends a stream and returns its status. It cancels the handler's context; when the
// handler returns, gRPC sends the status. For a handler that is blocked on the caller, see
// force. Concurrent calls log once, before the status is sent, and return the same status.
func (s *session) end(why error) error {
	s.ending.Do(func() {
		s.ended.Store(&ending{s.policy.deny(s, why), time.Now()})
		s.cancel(why)
	})
	return s.ended.Load().status
}

// force ends a stream whose handler has not returned in time. The caller gets the status
// Canceled, and the reason with its next call.
func (s *session) force() {
	if s.abort != nil {
		s.abort(s.ended.Load().status)
	}
}

// outcome returns the status of a call: the policy's has precedence over its handler's.
func (s *session) outcome(err error) error {
	if ending := s.ended.Load(); ending != nil {
		return ending.status
	}
	return err
}

const opCall = "call"

// An authError is an error of authentication, not of authorization.
type authError struct{ error }

func (s authError) Unwrap() error { return s.error }

func unauthenticated(format string, args ...any) error {
	return authError{leasehold.Errorf(opCall, leasehold.ErrDenied, "", format, args...)}
}

// denied returns the error of a call that is not permitted. The reason is a predicate of
// the caller.
func denied(c *Caller, fullMethod, why string) error {
	return leasehold.Errorf(opCall, leasehold.ErrDenied, short(fullMethod), "%s %s", c, why)
}

func toStatus(err error) error {
	if s := (authError{}); errors.As(err, &s) {
		return wire.FromStranger(s.error)
	}
	return wire.FromError(err)
}

func short(fullMethod string) string {
	return clip(fullMethod[strings.LastIndexByte(fullMethod, '/')+1:])
}

// nameDenied lists the names that an owner may use. It does not reveal those of others.
func nameDenied(s subject, names []leasehold.OwnerID) string {
	return fmt.Sprintf("may not use the owner name %q in namespace %q, only %s: set the owner's name, or add it to names in the access file", clip(string(s.owner)), clip(string(s.namespace)), some(names))
}

func namespaceDenied(s subject) string {
	return fmt.Sprintf("has no role for this in namespace %q: add a rule to the managers' access file", clip(string(s.namespace)))
}

// roleDenied names the caller's roles and the required ones.
func roleDenied(grants []grant, m method) string {
	if len(grants) == 0 {
		return "has no role in the managers' access file"
	}
	var have []role
	for _, g := range grants {
		if !slices.Contains(have, g.role) {
			have = append(have, g.role)
		}
	}
	if m.need == operateGroup && slices.Contains(have, roleOperator) {
		return "is operator of some namespaces, but the call requires an operator of all"
	}
	want := rolesFor(m.need)
	if len(want) == 0 {
		return "may not call a method without an access rule"
	}
	return fmt.Sprintf("has the role %s, but the call requires the role %s", some(have), some(want))
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
