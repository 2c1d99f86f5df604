package access

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/secure"
)

const authorization = "authorization"

// tap finds out who calls, and refuses who may not, when nothing but the headers
// of a call has been read. It runs on the goroutine that reads the connection, and
// must not wait.
func (p *Policy) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	s := &session{policy: p, fullMethod: info.FullMethodName, method: methodOf(info.FullMethodName)}
	if err := p.admit(ctx, s, info.Header); err != nil {
		s.refused = p.refuse(s, err)
		if s.direct() {
			connlimit.Refused(ctx)
		}
		if !lingers(ctx) {
			return ctx, s.refused
		}
	}
	ctx, s.abort = context.WithCancelCause(ctx) // gRPC ends the parent with the call
	return context.WithValue(ctx, sessionKey{}, s), nil
}

// lingers reports whether the call has a deadline that is far away. gRPC does not
// release the timer of a call that the tap refuses before its deadline, and a
// stranger could fill the memory with them. Such a call goes on to [Policy.Admit] or
// the interceptor, which refuse it unread and release everything.
func lingers(ctx context.Context) bool {
	deadline, set := ctx.Deadline()
	return set && time.Until(deadline) > 5*time.Second
}

func (p *Policy) admit(ctx context.Context, s *session, header metadata.MD) error {
	b := p.book.Load()
	err := authenticate(ctx, &s.caller, b, header)
	if s.method.need == forAnybody {
		return p.callTo(ctx, s) // whoever it says it is
	}
	if err == nil {
		err = passedOn(&s.caller, s.fullMethod, header)
	}
	if err == nil {
		err = s.admit(b)
	}
	if err == nil {
		err = p.callTo(ctx, s)
	}
	return err
}

// callTo counts a call. Who makes them too fast is served, but heard less often.
func (p *Policy) callTo(ctx context.Context, s *session) error {
	pause, err := p.budgets.call(s)
	if pause > 0 && s.direct() {
		connlimit.Slow(ctx, pause)
	}
	return err
}

func authenticate(ctx context.Context, c *Caller, b *book, header metadata.MD) error {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return leasehold.Errorf(opCall, leasehold.ErrInternal, "", "gRPC does not say who the peer is")
	}
	c.addr = hostOf(from.Addr.String())
	if info, ok := from.AuthInfo.(credentials.TLSInfo); ok {
		if err := c.certified(&info.State); err != nil {
			return err
		}
	}
	values := header[authorization]
	if len(values) == 0 {
		return nil
	}
	secret, err := bearer(values)
	if err != nil {
		return err
	}
	if credentials.CheckSecurityLevel(from.AuthInfo, credentials.PrivacyAndIntegrity) != nil && !loopback(from.Addr) {
		return strange("a token came in plain text, and others may have read it: replace it, and use TLS")
	}
	return c.bear(b, secret)
}

func (c *Caller) bear(b *book, secret string) error {
	t, err := b.authenticate(secret, time.Now())
	if err != nil {
		return err
	}
	c.secret = t.hash
	return c.add([]secure.Identity{t.identity()})
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

func loopback(a net.Addr) bool {
	return a.Network() == "unix" || net.ParseIP(hostOf(a.String())).IsLoopback()
}

const (
	// ForwardedHeader marks a call that a manager passes on to the leader.
	ForwardedHeader = "leasehold-forwarded"
	// callerHeader has the identities of who made it, one in each value.
	callerHeader = "leasehold-caller"
)

// Forward returns a context for passing the call of ctx on to another manager, which
// decides about the original caller. It is for handlers of calls that the policy has
// let in; others it leaves as they are.
func Forward(ctx context.Context) context.Context {
	s := sessionFrom(ctx)
	if s == nil {
		return ctx
	}
	s.passedOn.Store(true)
	for _, id := range s.caller.ids {
		ctx = metadata.AppendToOutgoingContext(ctx, callerHeader, string(id))
	}
	return ctx
}

// passedOn reads on whose behalf a call was passed on. That who passes it on is a
// manager is decided with the rest, and again whenever the policy changes.
func passedOn(c *Caller, fullMethod string, header metadata.MD) error {
	ids := header[callerHeader]
	if len(ids) == 0 {
		if len(header[ForwardedHeader]) > 0 && len(c.ids) > 0 {
			return denied(c, fullMethod, "passes on a call and does not say whose: give all managers an access file")
		}
		return nil
	}
	if len(c.ids) == 0 {
		return strange("whoever passes on a call of others must show a manager's certificate")
	}
	original := Caller{via: c.ids, chains: c.chains, addr: c.addr}
	for _, id := range ids {
		if !identity(secure.Identity(id)) {
			return denied(c, fullMethod, "passes on a call of somebody who has no identity")
		}
		original.ids = append(original.ids, secure.Identity(id))
	}
	*c = original
	return c.add(nil)
}

// identity reports whether a text can be who somebody is.
func identity(id secure.Identity) bool {
	if name, isToken := tokenName(id); isToken {
		return plainName(name)
	}
	return id.Validate() == nil && !isPattern(id)
}
