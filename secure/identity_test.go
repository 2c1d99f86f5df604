package secure_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

func TestIdentities(t *testing.T) {
	ca := newRoot(t, "ours")
	for _, test := range []struct {
		name   string
		change []func(*x509.Certificate)
		want   []secure.Identity
	}{
		{"nothing", nil, nil},
		{"a SPIFFE ID", []func(*x509.Certificate){uris(cacheAID)}, []secure.Identity{cacheAID}},
		{"a SPIFFE ID and a host", []func(*x509.Certificate){uris(cacheAID), hosts("cache-a")}, []secure.Identity{cacheAID, "dns:cache-a"}},
		{"several URIs", []func(*x509.Certificate){uris("https://example.org/a", "urn:b")}, []secure.Identity{"https://example.org/a", "urn:b"}},
		{"hosts", []func(*x509.Certificate){hosts("A.example.org", "b")}, []secure.Identity{"dns:a.example.org", "dns:b"}},
		{"a common name", []func(*x509.Certificate){func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "m1"} }}, nil},
		{"an address", []func(*x509.Certificate){hosts("10.0.0.1")}, nil},
		{"an e-mail address", []func(*x509.Certificate){func(c *x509.Certificate) { c.EmailAddresses = []string{"ann@example.org"} }}, nil},
		{"a wildcard", []func(*x509.Certificate){hosts("*.example.org")}, nil},
		{"a pattern as a host", []func(*x509.Certificate){hosts("{name}.example.org")}, nil},
		{"a pattern as a path", []func(*x509.Certificate){uris("https://example.org/{name}")}, []secure.Identity{"https://example.org/%7Bname%7D"}},
		{"a token's name", []func(*x509.Certificate){uris("token:alice")}, nil},
		{"a token's name in capitals", []func(*x509.Certificate){uris("TOKEN:alice")}, nil},
		{"a host in a URI", []func(*x509.Certificate){uris("dns:m1")}, nil},
		{"two SPIFFE IDs", []func(*x509.Certificate){uris(cacheAID, m1ID), hosts("m1")}, nil},
		{"a SPIFFE ID in capitals", []func(*x509.Certificate){uris("spiffe://EXAMPLE.org/a")}, nil},
		{"a SPIFFE ID with a port", []func(*x509.Certificate){uris("spiffe://example.org:80/a")}, nil},
		{"a SPIFFE ID with a slash at its end", []func(*x509.Certificate){uris("spiffe://example.org/a/")}, nil},
		{"a CA", []func(*x509.Certificate){uris(cacheAID), func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, secure.Identities(ca.issue(t, test.change...).cert)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIdentityMatch(t *testing.T) {
	for _, test := range []struct {
		identity, pattern secure.Identity
		name              string
		ok                bool
	}{
		{cacheAID, cacheAID, "", true},
		{cacheAID, cacheAID + "b", "", false},
		{cacheAID, "spiffe://example.org/owner/sessions/{name}", "cache-a", true},
		{cacheAID, "spiffe://example.org/owner/{name}/cache-a", "sessions", true},
		{cacheAID, "spiffe://example.org/owner/{name}", "", false},
		{cacheAID, "spiffe://other.org/owner/sessions/{name}", "", false},
		{"spiffe://example.org/owner/sessions/", "spiffe://example.org/owner/sessions/{name}", "", false},
		{"https://example.org/a?b", "https://example.org/{name}", "", false},
		{"https://example.org/%7Bname%7D", "https://example.org/{name}", "", false},
		{"dns:cache-a.example.org", "dns:{name}.example.org", "cache-a", true},
		{"dns:a.b.example.org", "dns:{name}.example.org", "", false},
		{"dns:*.example.org", "dns:{name}.example.org", "", false},
		{"dns:{name}.example.org", "dns:{name}.example.org", "", false},
		{"cache-a.example.org", "dns:{name}.example.org", "", false},
	} {
		name, ok := test.identity.Match(test.pattern)
		if name != test.name || ok != test.ok {
			t.Errorf("%q.Match(%q) = %q, %t, want %q, %t", test.identity, test.pattern, name, ok, test.name, test.ok)
		}
	}
}

// TestMatchedIdentityIsThePatternWithAName: an identity that matches a pattern equals the
// pattern with a plain name in place of {name}.
func TestMatchedIdentityIsThePatternWithAName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := secure.Identity(rapid.StringMatching(`(spiffe://[a-z.]{1,3}(/([a-z]|\{name\})){1,3}|dns:([a-z]|\{name\})(\.([a-z]|\{name\})){0,2})`).Draw(t, "pattern"))
		identity := secure.Identity(rapid.OneOf(
			rapid.StringMatching(`(spiffe://[a-z.]{1,3}(/[a-z{}%/.?]{0,2}){1,3}|dns:[a-z*{}.]{1,5})`),
			rapid.Just(strings.ReplaceAll(string(pattern), "{name}", "a")),
		).Draw(t, "identity"))
		if pattern.Validate() != nil {
			return
		}
		name, ok := identity.Match(pattern)
		if ok && identity != secure.Identity(strings.ReplaceAll(string(pattern), "{name}", name)) {
			t.Fatalf("%q matches %q by %q", identity, pattern, name)
		}
		if strings.ContainsAny(name, "/{}*?%#") {
			t.Fatalf("the name is %q", name)
		}
	})
}

func TestIdentityValidate(t *testing.T) {
	for _, good := range []secure.Identity{
		cacheAID, "spiffe://example.org/owner/sessions/{name}", "dns:m1", "dns:m1.example.org", "dns:{name}.example.org",
		"https://example.org/a?b", "urn:uuid:f81d4fae",
	} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []secure.Identity{
		"", "m1", "dns:", "dns:M1", "dns:*.example.org", "dns:a..b", "dns:{name}x.org", "dns:{name}.{name}", "token:alice",
		"spiffe://example.org", "spiffe://example.org/", "spiffe://{name}/a", "spiffe://example.org/{name}x", "spiffe://example.org/{other}",
		"spiffe://example.org/{name}/{name}", "spiffe://example.org/a b", "spiffe://user@example.org/a", "spiffe:example.org/a", "https://example.org/%zz",
		secure.Identity("dns:" + strings.Repeat("a", 3000)),
	} {
		if err := bad.Validate(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%.50q: %v", bad, err)
		}
	}
}
