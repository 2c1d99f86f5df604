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

// tap authenticates the caller and denies calls when only the headers have been read.
// It runs on the goroutine that reads the connection, and must not block.
func (p *Policy) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	s := &session{policy: p, fullMethod: info.FullMethodName, method: methodOf(info.FullMethodName)}
	if err := p.admit(ctx, s, info.Header); err != nil {
		s.denied = p.deny(s, err)
		if s.direct() {
			connlimit.Refused(ctx)
		}
		if !hasLongTimeout(ctx) {
			return ctx, s.denied
		}
	}
	ctx, s.abort = context.WithCancelCause(ctx) // gRPC ends the parent with the call
	return context.WithValue(ctx, sessionKey{}, s), nil
}

// hasLongTimeout reports whether the call's deadline is far away. gRPC keeps the timer of
// a call that the tap denies until its deadline: an anonymous caller could exhaust the
// memory. Such a call continues to [Policy.Admit] or the interceptor, which deny it without
// reading a message and release everything.
func hasLongTimeout(ctx context.Context) bool {
	deadline, set := ctx.Deadline()
	return set && time.Until(deadline) > 5*time.Second
}

func (p *Policy) admit(ctx context.Context, s *session, header metadata.MD) error {
	b := p.ruleset.Load()
	err := authenticate(ctx, &s.caller, b, header)
	if s.method.need == public {
		return p.charge(ctx, s) // even if authentication failed
	}
	if err == nil {
		err = forwarded(&s.caller, s.fullMethod, header)
	}
	if err == nil {
		err = s.admit(b)
	}
	if err == nil {
		err = p.charge(ctx, s)
	}
	return err
}

// charge charges a call to the caller's budget, and throttles the connection of a caller
// that calls too fast.
func (p *Policy) charge(ctx context.Context, s *session) error {
	pause, err := p.budgets.call(s)
	if pause > 0 && s.direct() {
		connlimit.Slow(ctx, pause)
	}
	return err
}

func authenticate(ctx context.Context, c *Caller, b *ruleset, header metadata.MD) error {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return leasehold.Errorf(opCall, leasehold.ErrInternal, "", "the context has no gRPC peer")
	}
	c.addr = hostOf(from.Addr.String())
	if info, ok := from.AuthInfo.(credentials.TLSInfo); ok {
		if err := c.addCertificate(&info.State); err != nil {
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
		return unauthenticated("the token was sent in plain text and may be compromised: replace it, and use TLS")
	}
	return c.addToken(b, secret)
}

func (c *Caller) addToken(b *ruleset, secret string) error {
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
	// ForwardedHeader marks a call that a manager forwards to the leader.
	ForwardedHeader = "leasehold-forwarded"
	// callerHeader has the identities of the original caller, one in each value.
	callerHeader = "leasehold-caller"
)

// Forward returns a context for forwarding the call of ctx to another manager, which
// authorizes the original caller. It returns ctx itself outside of a handler.
func Forward(ctx context.Context) context.Context {
	s := sessionFrom(ctx)
	if s == nil {
		return ctx
	}
	s.forwarded.Store(true)
	for _, id := range s.caller.ids {
		ctx = metadata.AppendToOutgoingContext(ctx, callerHeader, string(id))
	}
	return ctx
}

// forwarded reads the original caller of a forwarded call. That the sender is a manager is
// checked by admit, and again whenever the ruleset changes.
func forwarded(c *Caller, fullMethod string, header metadata.MD) error {
	ids := header[callerHeader]
	if len(ids) == 0 {
		if len(header[ForwardedHeader]) > 0 && len(c.ids) > 0 {
			return denied(c, fullMethod, "forwards a call without its caller: give all managers an access file")
		}
		return nil
	}
	if len(c.ids) == 0 {
		return unauthenticated("a forwarded call requires a manager's certificate")
	}
	original := Caller{via: c.ids, chains: c.chains, addr: c.addr}
	for _, id := range ids {
		if !validIdentity(secure.Identity(id)) {
			return denied(c, fullMethod, "forwards a call of an invalid identity")
		}
		original.ids = append(original.ids, secure.Identity(id))
	}
	*c = original
	return c.add(nil)
}

// validIdentity reports whether a caller can have this identity.
func validIdentity(id secure.Identity) bool {
	if name, isToken := tokenName(id); isToken {
		return plainName(name)
	}
	return id.Validate() == nil && !isPattern(id)
}
