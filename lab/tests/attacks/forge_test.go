//go:build linux

package attacks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

// An issuer signs whatever it is given.
type issuer struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	above *issuer // nil if it is a root
}

// newIssuer makes a CA, below another if there is one.
func newIssuer(t *testing.T, name string, above *issuer) *issuer {
	t.Helper()
	made := (&issuer{above: above}).sign(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: name}
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
		c.URIs, c.ExtKeyUsage = nil, nil
	})
	return &issuer{cert: made.Leaf, key: made.PrivateKey.(*ecdsa.PrivateKey), above: above}
}

// sign makes a certificate, of an owner in the namespace of those who attack unless it is
// changed. A CA that is not there yet signs itself, or has the one above it sign.
func (i *issuer) sign(t *testing.T, change ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: number.Add(number, big.NewInt(1)), Subject: pkix.Name{CommonName: "forged"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs: []*url.URL{identity("owner/other/forged")},
	}
	for _, c := range change {
		c(template)
	}
	by := i
	if i.cert == nil {
		by = i.above
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	out := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	for ; by != nil && by.above != nil; by = by.above {
		out.Certificate = append(out.Certificate, by.cert.Raw)
	}
	return out
}

// list is a revocation list.
func (i *issuer) list(t *testing.T, certs ...*x509.Certificate) string {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, c := range certs {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// identity is one of our domain.
func identity(path string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: domain, Path: "/" + path}
}

// Changes to a certificate.

func uris(all ...*url.URL) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.URIs = all }
}

func is(path string) func(*x509.Certificate) { return uris(identity(path)) }

func hosts(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames = all }
}

func commonName(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.Subject.CommonName = name }
}

func valid(from, until time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(until) }
}

func usage(of ...x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.ExtKeyUsage = of }
}

func addresses(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, a := range all {
			c.IPAddresses = append(c.IPAddresses, net.ParseIP(a))
		}
	}
}

func mails(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.EmailAddresses = all }
}

// showing is a config of a client that shows a certificate whether or not the server would
// take it; none if it is nil.
func (k *keep) showing(cert *tls.Certificate, protocols ...string) *tls.Config {
	if cert == nil {
		cert = &tls.Certificate{}
	}
	roots := x509.NewCertPool()
	roots.AddCert(k.root.cert)
	return &tls.Config{
		RootCAs: roots, ServerName: "127.0.0.1", NextProtos: protocols,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil },
	}
}
