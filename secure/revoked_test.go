package secure_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// TestRevoked: which lists of a file are in force.
func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, stranger := newRoot(t, "ours"), newRoot(t, "stranger")
		impostor := newRoot(t, "ours", func(c *x509.Certificate) { c.SubjectKeyId = ca.cert.SubjectKeyId })
		between := newIssuer(t, ca, "between")
		cert, lower := ca.issue(t, uris(cacheAID)).cert, between.issue(t, uris(cacheAID)).cert
		critical := func(id ...int) pkix.Extension {
			return pkix.Extension{Id: asn1.ObjectIdentifier(id), Critical: true, Value: []byte{0x30, 0}}
		}
		der, _ := pem.Decode(ca.revoke(t, nil, cert))
		for _, test := range []struct {
			name    string
			lists   [][]byte
			revoked []*x509.Certificate
			valid   []*x509.Certificate
			fails   string // why Open refuses it
			problem string // in Check
		}{
			{"nothing listed", [][]byte{ca.revoke(t, nil)}, nil, []*x509.Certificate{cert, lower}, "", ""},
			{"one", [][]byte{ca.revoke(t, nil, cert)}, []*x509.Certificate{cert}, []*x509.Certificate{lower}, "", ""},
			{"in DER", [][]byte{der.Bytes}, []*x509.Certificate{cert}, []*x509.Certificate{lower}, "", ""},
			{"another CA's number", [][]byte{ca.revoke(t, nil, lower)}, nil, []*x509.Certificate{cert, lower}, "", ""},
			{"expired", [][]byte{ca.revoke(t, func(l *x509.RevocationList) { l.NextUpdate = time.Now().Add(-time.Minute) }, cert)}, []*x509.Certificate{cert}, nil, "", "is outdated since"},
			{"of an unknown CA", [][]byte{stranger.revoke(t, nil, cert)}, nil, []*x509.Certificate{cert}, "", "is ignored: its issuer is not a trusted root"},
			{"of a former CA with the same name", [][]byte{newRoot(t, "ours").revoke(t, nil, cert)}, nil, []*x509.Certificate{cert}, "", "is ignored: its issuer is not a trusted root"},
			{"of an unknown CA under the name and key of a trusted one", [][]byte{impostor.revoke(t, nil, cert)}, nil, nil, "its signature is not by the trusted CA", ""},
			{"of an intermediate CA without its certificate", [][]byte{between.revoke(t, nil, lower)}, nil, []*x509.Certificate{lower}, "", "is ignored"},
			{"of an intermediate CA", [][]byte{between.revoke(t, nil, lower), between.text()}, []*x509.Certificate{lower}, []*x509.Certificate{cert}, "", ""},
			{"of an unknown CA with its certificate", [][]byte{stranger.revoke(t, nil, cert), stranger.text()}, nil, []*x509.Certificate{cert}, "", "is ignored"},
			{"two lists", [][]byte{ca.revoke(t, nil, cert), ca.revoke(t, nil)}, []*x509.Certificate{cert}, nil, "", ""},
			{"a delta list", [][]byte{ca.revoke(t, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{critical(2, 5, 29, 27)} }, cert)}, nil, nil, "delta lists and indirect lists are not supported", ""},
			{"a partial list", [][]byte{ca.revoke(t, func(l *x509.RevocationList) { l.ExtraExtensions = []pkix.Extension{critical(2, 5, 29, 28)} }, cert)}, []*x509.Certificate{cert}, nil, "", ""},
			{"an indirect entry", [][]byte{ca.revoke(t, func(l *x509.RevocationList) {
				l.RevokedCertificateEntries[0].ExtraExtensions = []pkix.Extension{critical(2, 5, 29, 29)}
			}, cert)}, nil, nil, "delta lists and indirect lists are not supported", ""},
			{"half a list", [][]byte{ca.revoke(t, nil, cert), ca.revoke(t, nil, cert)[:100]}, nil, nil, "of 2 PEM blocks", ""},
			{"a key", [][]byte{keyOf(t, ca)}, nil, nil, `it has a PEM block "PRIVATE KEY"`, ""},
		} {
			p := newPlace(t, ca.issue(t, uris(m1ID)), ca)
			p.revoke(test.lists...)
			k, err := secure.Open(p.conf)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%s: %v, want %q", test.name, err, test.fails)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			for _, c := range test.revoked {
				if !k.Revoked(c) {
					t.Errorf("%s: %v is not revoked", test.name, c.Issuer)
				}
			}
			for _, c := range test.valid {
				if k.Revoked(c) {
					t.Errorf("%s: %v is revoked", test.name, c.Issuer)
				}
			}
			if all := strings.Join(k.Check(), "\n"); !strings.Contains(all, test.problem) || test.problem == "" && all != "" {
				t.Errorf("%s: %q, want %q", test.name, all, test.problem)
			}
			k.Close()
		}
	})
}

// TestRevokedDoesNotAllocate: access control calls Revoked for every stream several times a
// second.
func TestRevokedDoesNotAllocate(t *testing.T) {
	ca := newRoot(t, "ours")
	p := newPlace(t, ca.issue(t, uris(m1ID)), ca)
	cert := ca.issue(t, uris(cacheAID)).cert
	p.revoke(ca.revoke(t, nil, numbered(4711)))
	k := p.open()
	if n := testing.AllocsPerRun(100, func() { k.Revoked(cert) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !k.Revoked(&x509.Certificate{RawIssuer: cert.RawIssuer, SerialNumber: new(big.Int).Lsh(big.NewInt(1), 500)}) {
		t.Error("a serial number that no list can contain is accepted")
	}
}

// TestNewRevocationList: a new list is in force for new connections, and for Revoked.
func TestNewRevocationList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		bad := ca.issue(t, uris(cacheAID))
		manager := newPlace(t, ca.issue(t, uris(m1ID), hosts("m1")), ca)
		manager.revoke(ca.revoke(t, nil))
		keeper, client := manager.open(), newPlace(t, bad, ca).open()
		s := serve(t, keeper.Server())
		if err := ask(t, s.dial(t, client.Client(), "m1:7400")); err != nil {
			t.Fatal(err)
		}
		changed := keeper.Changed()
		manager.revoke(ca.revoke(t, nil, bad.cert))
		<-changed
		if !keeper.Revoked(bad.cert) {
			t.Error("the certificate is not revoked")
		}
		if ask(t, s.dial(t, client.Client(), "m1:7400")) == nil {
			t.Error("the client was accepted")
		}
	})
}

// TestFirstRevocationList: with RevokedLater, the first list is in force when it appears, and
// stays in force if its file is deleted.
func TestFirstRevocationList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		bad := ca.issue(t, uris(cacheAID))
		manager := newPlace(t, ca.issue(t, uris(m1ID), hosts("m1")), ca)
		log, poll := manager.conf.Logger, manager.conf.Poll
		manager.conf = secure.Dir(manager.dir)
		manager.conf.Logger, manager.conf.Poll = log, poll
		keeper, client := manager.open(), newPlace(t, bad, ca).open()
		s := serve(t, keeper.Server())
		if err := ask(t, s.dial(t, client.Client(), "m1:7400")); err != nil {
			t.Fatal(err)
		}
		changed := keeper.Changed()
		manager.revoke(ca.revoke(t, nil, bad.cert))
		<-changed
		if err := ask(t, s.dial(t, client.Client(), "m1:7400")); err == nil {
			t.Error("the client was accepted")
		} else if !strings.Contains(err.Error(), "the server rejects the client's certificate, or requires one; its log has the reason") {
			t.Errorf("the client's error does not have the reason: %v", err)
		}
		if err := os.Remove(manager.path("crl.pem")); err != nil {
			t.Fatal(err)
		}
		if err := keeper.Reload(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("files without the list are applied: %v", err)
		}
		if !keeper.Revoked(bad.cert) {
			t.Error("the revocation ended with the deletion of the file")
		}
	})
}

// TestExpiredCertificates: a stream outlives the certificates of both sides; a new
// connection fails.
func TestExpiredCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		slow := func(l leaf) *secure.Keeper {
			p := newPlace(t, l, ca)
			p.conf.Poll = time.Minute
			return p.open()
		}
		manager := slow(ca.issue(t, uris(m1ID), hosts("m1"), valid(0, time.Hour)))
		client := slow(ca.issue(t, uris(cacheAID), valid(0, time.Hour)))
		s := serve(t, manager.Server())
		stream, err := s.dial(t, client.Client(), "m1:7400").Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVING} {
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Hour)
			s.health.SetServingStatus("", status)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := ask(t, s.dial(t, client.Client(), "m1:7400")); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Error(err)
		}
	})
}

// TestRevokedLater: the file with lists may be missing at first, but not disappear.
func TestRevokedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		bad := ca.issue(t, uris(cacheAID)).cert
		p := newPlace(t, ca.issue(t, uris(m1ID)), ca)
		p.conf.Revoked, p.conf.RevokedLater = p.path("crl.pem"), true
		k := p.open()
		time.Sleep(time.Minute)
		if k.Revoked(bad) || len(k.Check()) > 0 {
			t.Errorf("without a list: revoked %t, %q", k.Revoked(bad), k.Check())
		}
		p.write("crl.pem", nil)
		time.Sleep(time.Minute)
		if len(k.Check()) != 1 {
			t.Errorf("an empty list: %q", k.Check())
		}
		p.revoke(ca.revoke(t, nil, bad))
		time.Sleep(time.Minute)
		if !k.Revoked(bad) || len(k.Check()) > 0 {
			t.Errorf("with a list: revoked %t, %q", k.Revoked(bad), k.Check())
		}
		if err := os.Remove(p.path("crl.pem")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if !k.Revoked(bad) || len(k.Check()) != 1 || k.Reload() == nil {
			t.Errorf("after the list is deleted: revoked %t, %q", k.Revoked(bad), k.Check())
		}
	})
}
