package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/secure"
)

const (
	tokenPrefix  = "token:"
	maxTokenName = 64

	// A shorter token can be guessed; leasehold token creates none that is longer.
	minTokenBytes, maxTokenBytes = 16, 256
)

// A token is an entry of the file. It is immutable.
type token struct {
	name    string
	hash    [sha256.Size]byte
	expires time.Time // zero: never
}

func (t *token) expired(now time.Time) bool { return !t.expires.IsZero() && !now.Before(t.expires) }

func (t *token) identity() secure.Identity { return secure.Identity(tokenPrefix + t.name) }

func tokenName(id secure.Identity) (string, bool) {
	return strings.CutPrefix(string(id), tokenPrefix)
}

func plainName(s string) bool {
	for _, c := range []byte(s) {
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
		if !plain {
			return false
		}
	}
	return s != "" && len(s) <= maxTokenName
}

// saltedHash returns the map key of a token's hash. The salt is random per process:
// without it, the duration of a failed map lookup would leak bits of the stored hashes.
func (b *ruleset) saltedHash(hash [sha256.Size]byte) [sha256.Size]byte {
	return sha256.Sum256(append(b.salt[:], hash[:]...))
}

func (b *ruleset) authenticate(shown string, now time.Time) (*token, error) {
	if len(shown) < minTokenBytes || len(shown) > maxTokenBytes {
		return nil, unauthenticated("the token has %d bytes, want %d to %d", len(shown), minTokenBytes, maxTokenBytes)
	}
	hash := sha256.Sum256([]byte(shown))
	t := b.secrets[b.saltedHash(hash)]
	if t == nil || subtle.ConstantTimeCompare(t.hash[:], hash[:]) != 1 {
		return nil, unauthenticated("the token is not known: it was replaced or removed, or is for another group of managers")
	}
	if t.expired(now) {
		return nil, unauthenticated("the token %q expired at %s: create another with 'leasehold token'", t.name, t.expires.UTC().Format(time.RFC3339))
	}
	return t, nil
}

func bearer(values []string) (string, error) {
	if len(values) > 1 {
		return "", unauthenticated("the call has %d authorization headers, want one", len(values))
	}
	scheme, shown, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", unauthenticated("the authorization header must have the form \"Bearer TOKEN\"")
	}
	return strings.TrimSpace(shown), nil
}

// Bearer returns credentials for grpc.WithPerRPCCredentials that add a token to every
// call. They require TLS unless plain is set; managers accept plaintext tokens on the
// loopback interface only.
func Bearer(token string, plain bool) credentials.PerRPCCredentials {
	return bearerCredentials{secret.New(token), plain}
}

type bearerCredentials struct {
	token secret.Text
	plain bool
}

func (b bearerCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{authorization: "Bearer " + b.token.Reveal()}, nil
}

func (b bearerCredentials) RequireTransportSecurity() bool { return !b.plain }

// String does not contain the token.
func (bearerCredentials) String() string { return "bearer token" }

// GoString does not contain the token either.
func (b bearerCredentials) GoString() string { return b.String() }
