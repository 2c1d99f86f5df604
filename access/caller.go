package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
)

// Limits on a caller's identities: they are matched with the rules and forwarded in
// headers.
const (
	maxIdentities      = 32
	maxIdentitiesBytes = 8 << 10
)

// A Caller has authenticated identities. The zero Caller is anonymous. It is immutable,
// and safe for concurrent use.
type Caller struct {
	ids    []secure.Identity
	via    []secure.Identity     // the manager that forwarded the call
	chains [][]*x509.Certificate // verified
	secret [sha256.Size]byte     // the hash of the token; zero without one
	addr   string                // the host of the caller; "" if unknown
}

// Known returns a caller with identities that the program has authenticated by other
// means.
func Known(ids ...secure.Identity) Caller { return Caller{ids: slices.Clone(ids)} }

// From returns the caller with the host of addr for the audit log, for servers other
// than gRPC.
func (c Caller) From(addr string) Caller {
	c.addr = hostOf(addr)
	return c
}

// Identities returns the caller's identities.
func (c Caller) Identities() []secure.Identity { return slices.Clone(c.ids) }

// Via returns the identities of the manager that forwarded the call; none for a direct
// call.
func (c Caller) Via() []secure.Identity { return slices.Clone(c.via) }

// String returns the first identities, or "anonymous".
func (c Caller) String() string {
	if len(c.ids) == 0 {
		return "anonymous"
	}
	const most = 3
	names := make([]string, 0, most)
	for _, id := range c.ids[:min(most, len(c.ids))] {
		names = append(names, clip(string(id)))
	}
	return strings.Join(names, ", ")
}

// key identifies the caller's budget and its counters of denied calls.
func (c *Caller) key() string {
	if len(c.ids) == 0 {
		return "from " + c.addr
	}
	return string(c.ids[0])
}

func (c *Caller) addCertificate(state *tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	if len(state.VerifiedChains) == 0 {
		return unauthenticated("the server did not verify the client's certificate: use the credentials of package secure")
	}
	leaf := state.PeerCertificates[0]
	ids := secure.Identities(leaf)
	if len(ids) == 0 {
		return unauthenticated("the certificate with serial number %x has no identity: it needs a URI or a host name as subject alternative name", leaf.SerialNumber)
	}
	c.chains = state.VerifiedChains
	return c.add(ids)
}

func (c *Caller) add(ids []secure.Identity) error {
	c.ids = append(c.ids, ids...)
	size := 0
	for _, id := range c.ids {
		size += len(id)
	}
	if len(c.ids) > maxIdentities || size > maxIdentitiesBytes {
		return unauthenticated("the caller has too many identities: %d with %d bytes, the maximum is %d with %d bytes", len(c.ids), size, maxIdentities, maxIdentitiesBytes)
	}
	return nil
}

// revoked reports whether every chain of the caller's contains a revoked certificate.
func (c *Caller) revoked(is func(*x509.Certificate) bool) bool {
	if is == nil || len(c.chains) == 0 {
		return false
	}
	for _, chain := range c.chains {
		if !slices.ContainsFunc(chain, is) {
			return false
		}
	}
	return true
}

// verify returns an error if the caller's certificate was revoked or its token expired,
// was replaced or removed.
func (c *Caller) verify(b *ruleset, revoked func(*x509.Certificate) bool, now time.Time) error {
	if c.revoked(revoked) {
		who := c
		if len(c.via) > 0 {
			who = &Caller{ids: c.via} // the certificate is the manager's
		}
		return unauthenticated("the certificate of %s was revoked", who)
	}
	for _, id := range c.ids {
		name, isToken := tokenName(id)
		if !isToken {
			continue
		}
		t := b.tokens[name]
		switch {
		case t == nil, c.secret != [sha256.Size]byte{} && c.secret != t.hash:
			return unauthenticated("%s: the token was replaced or removed", id)
		case t.expired(now):
			return unauthenticated("%s: the token expired at %s", id, t.expires.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

type callerKey struct{}

// WithCaller sets the caller of calls within this process, such as those of
// manager.Manager's Admin. They have the permissions of the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller of a call: in a handler the authenticated one, elsewhere
// the one of [WithCaller].
func CallerFrom(ctx context.Context) (Caller, bool) {
	if s := sessionFrom(ctx); s != nil {
		return s.caller, true
	}
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
