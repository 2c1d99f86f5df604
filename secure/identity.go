package secure

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// An Identity is an authenticated name of a party: a URI of a certificate
// ("spiffe://example.org/owner/sessions/cache-a"), "dns:" and a host name, or
// "token:" and the name of a bearer token. Identities are compared byte by byte.
type Identity string

// Prefixes of identities other than URIs.
const (
	dnsPrefix   = "dns:"
	tokenPrefix = "token:"
)

const spiffeScheme = "spiffe"

// uriTag is the ASN.1 tag of URIs among a certificate's subject alternative names.
const uriTag = 6

// anyName matches one segment of a URI's path, or one label of a host name.
const anyName = "{name}"

// maxIdentityBytes is the limit of SPIFFE IDs.
const maxIdentityBytes = 2048

// Identities returns the identities of a certificate: its URIs, and its host names in
// lower case after "dns:". The common name, addresses and e-mail addresses are ignored.
//
// It returns nil for the certificate of a CA, for one with a SPIFFE ID and another URI, and
// for one with a malformed SPIFFE ID. It omits host names with wildcards, URIs with the
// prefix of another kind of identity, such as "token:alice", and URIs that are not in
// normal form, such as SPIFFE://example.org/a#.
func Identities(cert *x509.Certificate) []Identity {
	if checkLeaf(cert) != nil {
		return nil
	}
	var all []Identity
	rawURI := rawURIs(cert)
	for i, u := range cert.URIs {
		if id := Identity(u.String()); id.isConcrete() && !strings.HasPrefix(string(id), dnsPrefix) && string(id) == rawURI(i) {
			all = append(all, id)
		}
	}
	for _, name := range cert.DNSNames {
		if id := Identity(dnsPrefix + strings.ToLower(name)); id.isConcrete() {
			all = append(all, id)
		}
	}
	return all
}

// rawURIs returns the URIs of a certificate before url.Parse normalizes them, which drops
// an empty fragment and upper case. A certificate without Raw has only parsed URIs.
func rawURIs(cert *x509.Certificate) func(i int) string {
	if len(cert.Raw) == 0 {
		return func(i int) string { return cert.URIs[i].String() }
	}
	var all []string
	for _, e := range cert.Extensions {
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		var names asn1.RawValue
		if rest, err := asn1.Unmarshal(e.Value, &names); err != nil || len(rest) > 0 {
			break // impossible: crypto/x509 has parsed it
		}
		for rest := names.Bytes; len(rest) > 0; {
			var name asn1.RawValue
			var err error
			if rest, err = asn1.Unmarshal(rest, &name); err != nil {
				break
			}
			if name.Class == asn1.ClassContextSpecific && name.Tag == uriTag {
				all = append(all, string(name.Bytes))
			}
		}
	}
	return func(i int) string {
		if i < len(all) {
			return all[i]
		}
		return ""
	}
}

// isConcrete reports whether i is a valid identity and not a pattern.
func (i Identity) isConcrete() bool {
	return i.Validate() == nil && !strings.Contains(string(i), anyName)
}

// Match reports whether an identity matches a pattern. "{name}" in the pattern matches one
// segment of a URI's path or one label of a host name, of letters, digits, '.', '_' and '-';
// Match returns the matched text. A pattern without "{name}" matches only itself.
func (i Identity) Match(pattern Identity) (name string, ok bool) {
	if !strings.Contains(string(pattern), anyName) {
		return "", i == pattern
	}
	separator := "/"
	have, want := string(i), string(pattern)
	if rest, isDNS := strings.CutPrefix(want, dnsPrefix); isDNS {
		separator = "."
		want = rest
		if have, isDNS = strings.CutPrefix(have, dnsPrefix); !isDNS {
			return "", false
		}
	}
	segments, pieces := strings.Split(have, separator), strings.Split(want, separator)
	if len(segments) != len(pieces) {
		return "", false
	}
	for at, piece := range pieces {
		if piece == anyName && plainSegment(segments[at]) {
			name = segments[at]
		} else if piece == anyName || piece != segments[at] {
			return "", false
		}
	}
	return name, true
}

// Validate returns an error if i is neither a valid identity of a certificate nor a pattern
// for one.
func (i Identity) Validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("identity", leasehold.ErrInvalid, clip(string(i)), format, args...)
	}
	if i == "" || len(i) > maxIdentityBytes {
		return bad("want 1 to %d bytes, have %d", maxIdentityBytes, len(i))
	}
	if strings.Count(string(i), anyName) > 1 {
		return bad("it may contain %s only once", anyName)
	}
	if host, isDNS := strings.CutPrefix(string(i), dnsPrefix); isDNS {
		for label := range strings.SplitSeq(host, ".") {
			if label != anyName && (!plainSegment(label) || label != strings.ToLower(label)) {
				return bad("want dns: and a host name in lower case, such as dns:cache-a.example.org")
			}
		}
		return nil
	}
	if strings.HasPrefix(string(i), tokenPrefix) {
		return bad("a certificate cannot have the identity of a token")
	}
	// The first three segments are the scheme, an empty one, and the host.
	segments := strings.Split(string(i), "/")
	for at := 3; at < len(segments); at++ {
		if segments[at] == anyName {
			segments[at] = "name"
		}
	}
	plain := strings.Join(segments, "/")
	u, err := url.Parse(plain)
	if err != nil || u.Scheme == "" || strings.ContainsAny(plain, "{}") {
		return bad("want a URI such as spiffe://example.org/owner/sessions/cache-a, or dns: and a host name; %s must be a whole segment of its path or label of its name", anyName)
	}
	if u.Scheme == spiffeScheme {
		if err := checkSPIFFE(u); err != nil {
			return bad("%w", err)
		}
	}
	return nil
}

// checkLeaf returns an error for a certificate that identifies no party, whatever its
// issuer.
func checkLeaf(cert *x509.Certificate) error {
	if cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign != 0 {
		return fmt.Errorf("it is the certificate of a CA, which cannot be used as a client's or server's: issue another")
	}
	if !slices.ContainsFunc(cert.URIs, isSPIFFE) {
		return nil
	}
	if len(cert.URIs) > 1 {
		return fmt.Errorf("it has a SPIFFE ID and %d other URIs: a certificate with a SPIFFE ID must have exactly one URI", len(cert.URIs)-1)
	}
	return checkSPIFFE(cert.URIs[0])
}

func isSPIFFE(u *url.URL) bool { return u.Scheme == spiffeScheme }

// checkSPIFFE implements the SPIFFE standard: a trust domain in lower case, a path of
// plain segments, nothing else. An ID has one spelling, so that bytes can be compared.
func checkSPIFFE(u *url.URL) error {
	bad := func(why string) error { return fmt.Errorf("%q is not a SPIFFE ID: %s", clip(u.String()), why) }
	switch {
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return bad("it has more than a trust domain and a path")
	case !plainSegment(u.Host) || u.Host != strings.ToLower(u.Host):
		return bad("the trust domain must consist of a-z, 0-9, '.', '_' and '-'")
	case !strings.HasPrefix(u.Path, "/"):
		return bad("it has no path")
	case u.RawPath != "":
		return bad("its path contains escapes")
	}
	for segment := range strings.SplitSeq(u.Path[1:], "/") {
		if !plainSegment(segment) || segment == "." || segment == ".." {
			return bad("the segments of its path must consist of letters, digits, '.', '_' and '-'")
		}
	}
	return nil
}

// plainSegment reports whether s needs no escape in a URI or a host name.
func plainSegment(s string) bool {
	for _, c := range []byte(s) {
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
		if !plain {
			return false
		}
	}
	return s != ""
}

// clip bounds the text of a peer in errors and logs.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
