package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// pemFiles returns a CA, a certificate of it, its key, and a list that revokes it, in PEM.
func pemFiles(f *testing.F) (ca, cert, key, crl []byte) {
	must := func(der []byte, err error) []byte {
		if err != nil {
			f.Fatal(err)
		}
		return der
	}
	mine, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1},
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: root.NotBefore, NotAfter: root.NotAfter, DNSNames: []string{"a.example.org"},
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/owner/n/a"}},
	}
	list := &x509.RevocationList{Number: big.NewInt(1), NextUpdate: root.NotAfter, RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: leaf.SerialNumber, RevocationTime: root.NotBefore}}}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return block(pemCertificate, must(x509.CreateCertificate(rand.Reader, root, root, mine.Public(), mine))),
		block(pemCertificate, must(x509.CreateCertificate(rand.Reader, leaf, root, mine.Public(), mine))),
		block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(mine))),
		block(pemRevoked, must(x509.CreateRevocationList(rand.Reader, list, root, mine)))
}

// FuzzFiles: every set of files is rejected with an error that does not contain the key, or has a
// certificate that checkLeaf accepts and roots that are CAs.
func FuzzFiles(f *testing.F) {
	ca, cert, key, crl := pemFiles(f)
	f.Add(cert, key, ca, crl)
	f.Add(key, cert, ca, []byte{})
	f.Add(append(append([]byte{}, cert...), ca...), key, append(append([]byte{}, ca...), "-----BEGIN"...), ca)
	f.Add([]byte("\x30\x82"), []byte{}, cert, []byte("-----BEGIN X509 CRL-----\n-----END X509 CRL-----\n"))
	private := strings.Split(string(key), "\n")[1]
	f.Fuzz(func(t *testing.T, cert, key, roots, lists []byte) {
		c := &Config{Cert: "cert.pem", Key: "key.pem", Roots: "roots.pem", Revoked: "revoked.pem"}
		m, err := parse(c, files{cert, key, roots, lists}, time.Now())
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid || strings.Contains(err.Error(), private) {
				t.Fatalf("kind %v: %v", leasehold.KindOf(err), err)
			}
			return
		}
		if m.cert == nil || len(m.roots) == 0 || checkLeaf(m.cert.Leaf) != nil {
			t.Fatalf("%+v", m)
		}
		for _, root := range m.roots {
			if !root.IsCA {
				t.Fatalf("the root %s is not a CA", nameOf(root))
			}
		}
	})
}

// FuzzIdentities: no identity of a certificate is a token or a pattern, or has a second spelling.
func FuzzIdentities(f *testing.F) {
	for _, s := range []string{"spiffe://example.org/a", "spiffe://EXAMPLE.org/a", "token:alice", "dns:a", "spiffe://example.org/{name}", "spiffe://u@example.org/a", "spiffe://example.org/a%2Fb", "https://a/b?c#d", "", "urn:x"} {
		f.Add(s, "Host.Example.ORG", s)
	}
	f.Add("spiffe://d/{name}/x", "*.example.org", "spiffe://d/a/x")
	f.Fuzz(func(t *testing.T, uri, host, pattern string) {
		u, err := url.Parse(uri)
		if err != nil {
			return
		}
		for _, id := range Identities(&x509.Certificate{URIs: []*url.URL{u}, DNSNames: []string{host}}) {
			text := string(id)
			switch {
			case strings.HasPrefix(text, tokenPrefix) || strings.Contains(text, anyName) || strings.Contains(text, "*") && strings.HasPrefix(text, dnsPrefix):
				t.Fatalf("%q, %q: %q", uri, host, id)
			case strings.HasPrefix(text, dnsPrefix) && (text != strings.ToLower(text) || text != dnsPrefix+strings.ToLower(host)):
				t.Fatalf("%q, %q: %q", uri, host, id)
			}
			if _, itself := id.Match(id); !itself {
				t.Fatalf("%q does not match itself", id)
			}
			name, matched := id.Match(Identity(pattern))
			if matched && strings.Contains(pattern, anyName) && (!plainSegment(name) || strings.Replace(pattern, anyName, name, 1) != text) {
				t.Fatalf("%q matches %q with the name %q", id, pattern, name)
			}
		}
	})
}
