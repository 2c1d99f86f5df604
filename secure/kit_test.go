package secure_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/secure"
)

// An issuer is a root or intermediate CA.
type issuer struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	chain [][]byte // DER of the intermediates up to the root, without it
}

// newRoot returns a self-signed CA.
func newRoot(t testing.TB, name string, change ...func(*x509.Certificate)) *issuer {
	t.Helper()
	return newIssuer(t, nil, name, change...)
}

// newIssuer returns a CA, signed by another or by itself.
func newIssuer(t testing.TB, above *issuer, name string, change ...func(*x509.Certificate)) *issuer {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          newSerial(t),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(10 * 365 * 24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	for _, c := range change {
		c(template)
	}
	key := newKey(t)
	i := &issuer{key: key}
	if above == nil {
		i.cert = sign(t, template, template, key, key)
		return i
	}
	i.cert = sign(t, template, above.cert, key, above.key)
	i.chain = append([][]byte{i.cert.Raw}, above.chain...)
	return i
}

// A leaf is a certificate with its key, as files have them.
type leaf struct {
	cert     *x509.Certificate
	certText []byte
	keyText  []byte
}

// issue returns a certificate for clients and servers, valid for a day.
func (i *issuer) issue(t testing.TB, change ...func(*x509.Certificate)) leaf {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: newSerial(t),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, c := range change {
		c(template)
	}
	key := newKey(t)
	cert := sign(t, template, i.cert, key, i.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return leaf{
		cert:     cert,
		certText: pemText("CERTIFICATE", append([][]byte{cert.Raw}, i.chain...)...),
		keyText:  pemText("PRIVATE KEY", der),
	}
}

// revoke returns a revocation list.
func (i *issuer) revoke(t testing.TB, change func(*x509.RevocationList), certs ...*x509.Certificate) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, c := range certs {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: time.Now()})
	}
	if change != nil {
		change(list)
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, i.cert, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pemText("X509 CRL", der)
}

func (i *issuer) text() []byte { return pemText("CERTIFICATE", i.cert.Raw) }

func uris(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, s := range all {
			u, err := url.Parse(s)
			if err != nil {
				panic(err)
			}
			c.URIs = append(c.URIs, u)
		}
	}
}

func hosts(all ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, s := range all {
			if ip := net.ParseIP(s); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, s)
			}
		}
	}
}

func usages(all ...x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.ExtKeyUsage = all }
}

// valid sets the validity, relative to now.
func valid(from, until time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(until)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSerial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sign(t testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func pemText(kind string, ders ...[]byte) []byte {
	var text []byte
	for _, der := range ders {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	return text
}

// A place is the directory with the files of one process.
type place struct {
	t    testing.TB
	dir  string
	conf secure.Config
	log  *logbook.Book
}

// newPlace writes the files. Poll is a second.
func newPlace(t testing.TB, l leaf, roots ...*issuer) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, dir: dir, log: &logbook.Book{}}
	p.conf = secure.Config{Roots: p.path("ca.crt"), Poll: time.Second, Logger: p.log.Logger()}
	p.trust(roots...)
	if l.cert != nil {
		p.conf.Cert, p.conf.Key = p.path("tls.crt"), p.path("tls.key")
		p.become(l)
	}
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name string, text []byte) {
	p.t.Helper()
	// Atomically, by renaming.
	if err := os.WriteFile(p.path(name+".new"), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.path(name+".new"), p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) become(l leaf) {
	p.t.Helper()
	p.write("tls.crt", l.certText)
	p.write("tls.key", l.keyText)
}

func (p *place) trust(roots ...*issuer) {
	p.t.Helper()
	var text []byte
	for _, r := range roots {
		text = append(text, r.text()...)
	}
	p.write("ca.crt", text)
}

func (p *place) revoke(lists ...[]byte) {
	p.t.Helper()
	p.conf.Revoked = p.path("crl.pem")
	p.write("crl.pem", bytes.Join(lists, nil))
}

// open opens the place until the test ends.
func (p *place) open() *secure.Keeper {
	p.t.Helper()
	k, err := secure.Open(p.conf)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(k.Close)
	return k
}

// keyOf returns a CA's key in PEM.
func keyOf(t testing.TB, i *issuer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return pemText("PRIVATE KEY", der)
}
