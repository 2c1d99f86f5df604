package etcd_test

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
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// An authority has one certificate that serves on loopback and identifies clients, as files and as
// a client's configuration.
type authority struct {
	caFile, certFile, keyFile string
	client                    *tls.Config
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{Organization: []string{"test"}},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	must(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(err)
	a := authority{
		caFile: write("ca.pem", "CERTIFICATE", caDER), certFile: write("cert.pem", "CERTIFICATE", der),
		keyFile: write("key.pem", "EC PRIVATE KEY", keyDER),
	}
	pair, err := tls.LoadX509KeyPair(a.certFile, a.keyFile)
	must(err)
	roots := x509.NewCertPool()
	caCert, err := x509.ParseCertificate(caDER)
	must(err)
	roots.AddCert(caCert)
	a.client = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}
	return a
}

// peers returns the peer TLS configuration of this authority's members.
func (a authority) peers(t testing.TB) etcd.PeerTLS {
	t.Helper()
	k, err := secure.Open(secure.Config{Cert: a.certFile, Key: a.keyFile, Roots: a.caFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	server := k.ServerTLS(secure.Required)
	server.NextProtos = []string{"http/1.1"}
	return etcd.PeerTLS{CertFile: a.certFile, KeyFile: a.keyFile, CAFile: a.caFile, Server: server}
}
