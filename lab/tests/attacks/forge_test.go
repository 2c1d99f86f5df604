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

// An issuer is a CA that signs any certificate.
type issuer struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	above *issuer // nil if it is a root
}

// newIssuer creates a root CA, or an intermediate CA if above is not nil.
func newIssuer(t *testing.T, name string, above *issuer) *issuer {
	t.Helper()
	made := (&issuer{above: above}).sign(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: name}
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
		c.URIs, c.ExtKeyUsage = nil, nil
	})
	return &issuer{cert: made.Leaf, key: made.PrivateKey.(*ecdsa.PrivateKey), above: above}
}

// sign creates a certificate, of an owner in the attackers' namespace unless it is changed. An
// issuer without a certificate signs itself, or is signed by the CA above.
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
		URIs: []*url.URL{spiffeID("owner/other/forged")},
	}
	for _, c := range change {
		c(template)
	}
	issuing := i
	if i.cert == nil {
		issuing = i.above
	}
	parent, signer := template, key
	if issuing != nil {
		parent, signer = issuing.cert, issuing.key
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
	for ; issuing != nil && issuing.above != nil; issuing = issuing.above {
		out.Certificate = append(out.Certificate, issuing.cert.Raw)
	}
	return out
}

// revocationList returns a CRL.
func (i *issuer) revocationList(t *testing.T, certs ...*x509.Certificate) string {
	t.Helper()
	revocationList := &x509.RevocationList{Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, c := range certs {
		revocationList.RevokedCertificateEntries = append(revocationList.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, revocationList, i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

// spiffeID returns an identity in the trust domain.
func spiffeID(path string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: domain, Path: "/" + path}
}

// Changes of a certificate for sign.

func withURIs(all ...*url.URL) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.URIs = all }
}

func withIdentity(path string) func(*x509.Certificate) { return withURIs(spiffeID(path)) }

func withHosts(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames = all }
}

func withCommonName(name string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.Subject.CommonName = name }
}

func withValidity(from, until time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(until) }
}

func withUsage(all ...x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.ExtKeyUsage = all }
}

func withAddresses(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, a := range all {
			c.IPAddresses = append(c.IPAddresses, net.ParseIP(a))
		}
	}
}

func withMails(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.EmailAddresses = all }
}

// clientTLS is a client configuration that sends a certificate even if the server would not
// accept its CA; none if it is nil.
func (k *authority) clientTLS(cert *tls.Certificate, protocols ...string) *tls.Config {
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
