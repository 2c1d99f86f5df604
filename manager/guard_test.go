package manager_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/secure"
)

const guardedFile = `
rules:
  - {identity: spiffe://d/manager/m1, role: manager, namespaces: ["*"]}
  - {identity: spiffe://d/manager/m2, role: manager, namespaces: ["*"]}
  - {identity: spiffe://d/manager/m3, role: manager, namespaces: ["*"]}
  - {identity: "spiffe://d/owner/pool/{name}", role: owner, namespaces: [pool]}
  - {identity: spiffe://d/lookup/pool, role: lookup, namespaces: [pool]}
  - {identity: spiffe://d/operator/ann, role: operator, namespaces: ["*"]}
  - {identity: spiffe://d/operator/pool, role: operator, namespaces: [pool]}
`

// A guard is a CA with the certificates that it has issued, and an access file for
// each manager.
type guard struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	issued  map[string]*x509.Certificate
	keepers map[string]*secure.Keeper
	books   map[string]*access.Policy
	serial  int64
	lasts   time.Duration // validity of issued certificates

	mu    sync.Mutex
	audit map[string]*strings.Builder // by manager
}

func newGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{
		t: t, dir: t.TempDir(), lasts: 24 * time.Hour, issued: make(map[string]*x509.Certificate), keepers: make(map[string]*secure.Keeper),
		books: make(map[string]*access.Policy), audit: make(map[string]*strings.Builder),
	}
	g.key = g.newKey()
	g.cert = g.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "CA of a test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil, g.key)
	g.write("ca.crt", "CERTIFICATE", g.cert.Raw)
	g.revoke()
	g.permit(guardedFile)
	t.Cleanup(func() {
		for _, p := range g.books {
			p.Close()
		}
		for _, k := range g.keepers {
			k.Close()
		}
	})
	return g
}

func (g *guard) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		g.t.Fatal(err)
	}
	return key
}

func (g *guard) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	g.t.Helper()
	g.serial++
	template.SerialNumber = big.NewInt(g.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(g.lasts)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, g.key)
	if err != nil {
		g.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		g.t.Fatal(err)
	}
	return cert
}

func (g *guard) path(name string) string { return filepath.Join(g.dir, name) }

func (g *guard) write(name, kind string, der []byte) {
	g.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(g.path(name), text, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// permit writes the access file of all managers.
func (g *guard) permit(text string) {
	g.t.Helper()
	if err := os.WriteFile(g.path("access.yaml"), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// revoke writes a revocation list with the certificates of these identities.
func (g *guard) revoke(ids ...string) {
	g.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(24 * time.Hour)}
	for _, id := range ids {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: g.issued[id].SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, g.cert, g.key)
	if err != nil {
		g.t.Fatal(err)
	}
	g.write("revoked.crl", "X509 CRL", der)
}

// keeper returns the TLS identity and the trusted CA of a process.
func (g *guard) keeper(id string, hosts ...string) *secure.Keeper {
	g.t.Helper()
	if k := g.keepers[id]; k != nil {
		return k
	}
	base := g.issue(id, hosts...)
	k, err := secure.Open(secure.Config{
		Cert: g.path(base + ".crt"), Key: g.path(base + ".key"), Roots: g.path("ca.crt"), Revoked: g.path("revoked.crl"), Poll: time.Second,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.keepers[id] = k
	return k
}

// issue writes a certificate, replacing an earlier one, and returns the base name of its files.
func (g *guard) issue(id string, hosts ...string) (base string) {
	g.t.Helper()
	u, err := url.Parse(id)
	if err != nil {
		g.t.Fatal(err)
	}
	key := g.newKey()
	cert := g.sign(&x509.Certificate{
		URIs: []*url.URL{u}, DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, g.cert, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		g.t.Fatal(err)
	}
	base = strings.NewReplacer("/", "-", ":", "-").Replace(id)
	g.write(base+".crt", "CERTIFICATE", cert.Raw)
	g.write(base+".key", "PRIVATE KEY", der)
	g.issued[id] = cert
	return base
}

// post configures a manager with its certificate and the access file.
func (g *guard) post(name string, cfg *manager.Config) {
	g.t.Helper()
	k := g.keeper("spiffe://d/manager/"+name, name)
	cfg.ServerCredentials, cfg.ClientCredentials = k.Server(), k.Client()
	if g.books[name] == nil {
		var err error
		g.books[name], err = access.Open(access.Config{File: g.path("access.yaml"), Revoked: k.Revoked, Logger: slog.New(slog.NewTextHandler(&auditor{g, name}, nil))})
		if err != nil {
			g.t.Fatal(err)
		}
	}
	cfg.Access = g.books[name]
}

// An auditor is the audit log of a manager's policy.
type auditor struct {
	g    *guard
	name string
}

func (a *auditor) Write(line []byte) (int, error) {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	if a.g.audit[a.name] == nil {
		a.g.audit[a.name] = &strings.Builder{}
	}
	return a.g.audit[a.name].Write(line)
}

// audited returns the number of lines of a manager's audit log that contain all parts.
func (g *guard) audited(name string, parts ...string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.audit[name] == nil {
		return 0
	}
next:
	for line := range strings.Lines(g.audit[name].String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		n++
	}
	return n
}

// as returns the dial options of an identity.
func (c *cluster) as(id string) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(c.dial), grpc.WithTransportCredentials(c.guard.keeper(id).Client())}
}
