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

	// Whatever is shorter can be guessed, and nobody issues longer ones.
	minToken, maxToken = 16, 256
)

// A token is one of the file. It is immutable.
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

// salted is where a token is kept by its hash. Without the salt, which nobody
// outside of this process knows, the time that it takes not to find a token would
// tell something about the hashes that there are.
func (b *book) salted(hash [sha256.Size]byte) [sha256.Size]byte {
	return sha256.Sum256(append(b.salt[:], hash[:]...))
}

func (b *book) authenticate(shown string, now time.Time) (*token, error) {
	if len(shown) < minToken || len(shown) > maxToken {
		return nil, strange("the token has %d bytes, and no token has: want %d to %d", len(shown), minToken, maxToken)
	}
	hash := sha256.Sum256([]byte(shown))
	t := b.secrets[b.salted(hash)]
	if t == nil || subtle.ConstantTimeCompare(t.hash[:], hash[:]) != 1 {
		return nil, strange("the token is not known: it was replaced or taken away, or is for another group of managers")
	}
	if t.expired(now) {
		return nil, strange("the token %q expired at %s: make another with 'leasehold token'", t.name, t.expires.UTC().Format(time.RFC3339))
	}
	return t, nil
}

func bearer(values []string) (string, error) {
	if len(values) > 1 {
		return "", strange("there are %d authorization headers, want one", len(values))
	}
	scheme, shown, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", strange("the authorization header is not of the form \"Bearer TOKEN\"")
	}
	return strings.TrimSpace(shown), nil
}

// Bearer returns credentials with which a gRPC client shows a token with every
// call, for grpc.WithPerRPCCredentials. It shows it over TLS only, or, if plain is
// set, wherever it is: managers take it in plain text on the loopback alone.
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

// String says what it is.
func (bearerCredentials) String() string { return "bearer token" }

// GoString does the same for those who print with %#v.
func (b bearerCredentials) GoString() string { return b.String() }
