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

// An Identity is who somebody is: a URI, as it stands in a certificate
// ("spiffe://example.org/owner/sessions/cache-a"), "dns:" and a host name, or
// "token:" and the name of a bearer token. Identities are compared byte by byte.
type Identity string

// Prefixes of identities that are no URIs of certificates.
const (
	dnsPrefix   = "dns:"
	tokenPrefix = "token:"
)

const spiffeScheme = "spiffe"

// uriTag is how URIs are marked among a certificate's subject alternative names.
const uriTag = 6

// anyName stands in a pattern for one segment of a URI's path, or one label of
// a host name.
const anyName = "{name}"

// maxIdentity is how long a pattern may be; SPIFFE's bound on an ID is the same.
const maxIdentity = 2048

// Identities returns who the holder of a certificate is: its URIs as they are,
// and its host names, in lower case and after "dns:". A certificate's common
// name, addresses and e-mail addresses say nothing about who somebody is.
//
// A certificate of a CA, one that has a SPIFFE ID beside another URI and one
// whose SPIFFE ID is malformed are nobody's: the answer is nil. Left out are
// host names with wildcards, URIs that could be taken for another kind of
// identity, such as "token:alice", and URIs that are not written as they usually are,
// such as SPIFFE://example.org/a#.
func Identities(cert *x509.Certificate) []Identity {
	if checkLeaf(cert) != nil {
		return nil
	}
	var all []Identity
	asWritten := writtenURIs(cert)
	for i, u := range cert.URIs {
		if id := Identity(u.String()); id.isOne() && !strings.HasPrefix(string(id), dnsPrefix) && string(id) == asWritten(i) {
			all = append(all, id)
		}
	}
	for _, name := range cert.DNSNames {
		if id := Identity(dnsPrefix + strings.ToLower(name)); id.isOne() {
			all = append(all, id)
		}
	}
	return all
}

// writtenURIs returns the URIs of a certificate as they stand in it: a URL that was parsed
// has lost an empty fragment, and what was in capitals. Of a certificate that was never
// written, they are what they are.
func writtenURIs(cert *x509.Certificate) func(i int) string {
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
			break // crypto/x509 has read it, and would have refused it
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

// isOne reports whether i is an identity, and no pattern.
func (i Identity) isOne() bool { return i.Validate() == nil && !strings.Contains(string(i), anyName) }

// Match reports whether an identity is the one that pattern names. In a
// pattern, "{name}" stands for one segment of a URI's path or one label of a
// host name, and what stands there is returned; it consists of letters, digits,
// '.', '_' and '-'. A pattern without it is the identity itself.
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

// Validate reports what is wrong with an identity that a certificate is to
// have, or with a pattern for such identities.
func (i Identity) Validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("identity", leasehold.ErrInvalid, clip(string(i)), format, args...)
	}
	if i == "" || len(i) > maxIdentity {
		return bad("want 1 to %d bytes, have %d", maxIdentity, len(i))
	}
	if strings.Count(string(i), anyName) > 1 {
		return bad("%s may stand in it once", anyName)
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
		return bad("a token is no certificate's identity")
	}
	// Before the path there are the scheme, nothing, and the host.
	segments := strings.Split(string(i), "/")
	for at := 3; at < len(segments); at++ {
		if segments[at] == anyName {
			segments[at] = "name"
		}
	}
	plain := strings.Join(segments, "/")
	u, err := url.Parse(plain)
	if err != nil || u.Scheme == "" || strings.ContainsAny(plain, "{}") {
		return bad("want a URI such as spiffe://example.org/owner/sessions/cache-a, or dns: and a host name; %s stands for one whole segment of its path or label of its name", anyName)
	}
	if u.Scheme == spiffeScheme {
		if err := checkSPIFFE(u); err != nil {
			return bad("%w", err)
		}
	}
	return nil
}

// checkLeaf reports why a certificate cannot be anybody's, whoever signed it.
func checkLeaf(cert *x509.Certificate) error {
	if cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign != 0 {
		return fmt.Errorf("it is the certificate of a CA, which signs others and does not speak for itself: issue one that is not")
	}
	if !slices.ContainsFunc(cert.URIs, isSPIFFE) {
		return nil
	}
	if len(cert.URIs) > 1 {
		return fmt.Errorf("it has %d URIs beside a SPIFFE ID: such a certificate has exactly one URI", len(cert.URIs)-1)
	}
	return checkSPIFFE(cert.URIs[0])
}

func isSPIFFE(u *url.URL) bool { return u.Scheme == spiffeScheme }

// checkSPIFFE follows the standard: a trust domain in lower case, a path of
// plain segments, nothing else. There is one way to write an ID, so that
// comparing bytes is enough.
func checkSPIFFE(u *url.URL) error {
	bad := func(why string) error { return fmt.Errorf("%q is no SPIFFE ID: %s", clip(u.String()), why) }
	switch {
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return bad("it has more than a trust domain and a path")
	case !plainSegment(u.Host) || u.Host != strings.ToLower(u.Host):
		return bad("the trust domain has a-z, 0-9, '.', '_' and '-' only")
	case !strings.HasPrefix(u.Path, "/"):
		return bad("it has no path")
	case u.RawPath != "":
		return bad("its path has escapes")
	}
	for segment := range strings.SplitSeq(u.Path[1:], "/") {
		if !plainSegment(segment) || segment == "." || segment == ".." {
			return bad("the segments of the path have letters, digits, '.', '_' and '-' only, and are not empty")
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

// clip keeps what a peer sent from flooding a log.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
