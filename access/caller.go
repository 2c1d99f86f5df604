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

// Limits on a caller's identities, which are compared with the rules and passed on
// in headers.
const (
	maxIdentities      = 32
	maxIdentitiesBytes = 8 << 10
)

// A Caller is somebody whose identities have been made sure of. The zero Caller is
// nobody. It is immutable, and safe for concurrent use.
type Caller struct {
	ids    []secure.Identity
	via    []secure.Identity     // the manager that passed the call on
	chains [][]*x509.Certificate // that were verified
	secret [sha256.Size]byte     // the hash of the token that was shown, if one was
	addr   string                // where the call comes from, if that is known
}

// Known returns a caller with these identities, for whoever has made sure of them
// in a way of its own.
func Known(ids ...secure.Identity) Caller { return Caller{ids: slices.Clone(ids)} }

// From returns the caller, and notes the address that it calls from for what is
// written down: for those who are not called by gRPC.
func (c Caller) From(addr string) Caller {
	c.addr = hostOf(addr)
	return c
}

// Identities returns who the caller is.
func (c Caller) Identities() []secure.Identity { return slices.Clone(c.ids) }

// Via returns the identities of the manager that passed the call on; none if it came
// from the caller itself.
func (c Caller) Via() []secure.Identity { return slices.Clone(c.via) }

// String names the caller for people.
func (c Caller) String() string {
	if len(c.ids) == 0 {
		return "nobody"
	}
	const most = 3
	names := make([]string, 0, most)
	for _, id := range c.ids[:min(most, len(c.ids))] {
		names = append(names, clip(string(id)))
	}
	return strings.Join(names, ", ")
}

// key is by what a caller's budget and its refusals are counted.
func (c *Caller) key() string {
	if len(c.ids) == 0 {
		return "from " + c.addr
	}
	return string(c.ids[0])
}

func (c *Caller) certified(state *tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	if len(state.VerifiedChains) == 0 {
		return strange("the server has not verified the client's certificate: it must, as the credentials of package secure do")
	}
	leaf := state.PeerCertificates[0]
	ids := secure.Identities(leaf)
	if len(ids) == 0 {
		return strange("the certificate with serial number %x has no identity: it needs a URI or a host name as subject alternative name", leaf.SerialNumber)
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
		return strange("%d identities of %d bytes are more than one caller may have: %d of %d bytes together", len(c.ids), size, maxIdentities, maxIdentitiesBytes)
	}
	return nil
}

// revoked reports whether a certificate in every chain of the caller's was.
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

// verify reports whether the caller is still who it was: its certificate was not
// revoked, and its tokens are those of the file.
func (c *Caller) verify(b *book, revoked func(*x509.Certificate) bool, now time.Time) error {
	if c.revoked(revoked) {
		who := c
		if len(c.via) > 0 {
			who = &Caller{ids: c.via} // whose certificate it is
		}
		return strange("the certificate of %s was revoked", who)
	}
	for _, id := range c.ids {
		name, isToken := tokenName(id)
		if !isToken {
			continue
		}
		t := b.tokens[name]
		switch {
		case t == nil, c.secret != [sha256.Size]byte{} && c.secret != t.hash:
			return strange("%s: the token was replaced or taken away", id)
		case t.expired(now):
			return strange("%s: the token expired at %s", id, t.expires.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

type callerKey struct{}

// WithCaller says on whose behalf calls within this process are made: those of
// manager.Manager's Admin, which are permitted what the caller is.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns who makes a call: in a handler whoever the server has
// authenticated, elsewhere what [WithCaller] has set.
func CallerFrom(ctx context.Context) (Caller, bool) {
	if s := sessionFrom(ctx); s != nil {
		return s.caller, true
	}
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
