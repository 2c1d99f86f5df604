package secure_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold/secure"
)

const (
	m1ID     = "spiffe://example.org/manager/m1"
	cacheAID = "spiffe://example.org/owner/sessions/cache-a"
)

// shake runs a handshake over a pipe, after which the server sends a byte: only then does a
// client of TLS 1.3 have the result of the server's verification.
func shake(t testing.TB, client, server credentials.TransportCredentials, addr string) (clientErr, serverErr error) {
	t.Helper()
	// Buffered: one side may be writing when the other closes.
	listener := bufconn.Listen(1 << 16)
	defer func() { _ = listener.Close() }() // it never fails
	deadline := time.Now().Add(10 * time.Second)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- greet(server, listener, deadline) }()
	near, err := listener.DialContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := client.ClientHandshake(ctx, addr, near)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	serverErr = <-done
	_ = near.Close()
	return err, serverErr
}

// greet runs the handshake as a server, and sends a byte.
func greet(server credentials.TransportCredentials, listener net.Listener, deadline time.Time) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it never fails
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	secured, _, err := server.ServerHandshake(conn)
	if err != nil {
		return err
	}
	_, err = secured.Write([]byte{1})
	return err
}

// raw returns credentials with an insecure config.
func raw(l *leaf, change func(*tls.Config)) credentials.TransportCredentials {
	c := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
	if l != nil {
		pair, err := tls.X509KeyPair(l.certText, l.keyText)
		if err != nil {
			panic(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		c.Certificates = []tls.Certificate{pair}
	}
	if change != nil {
		change(c)
	}
	return credentials.NewTLS(c)
}

// An attack is one side of a handshake that the other side must reject.
type attack struct {
	name string
	// make returns the certificate of the attacker, nil for none.
	make func(t *testing.T, ca *issuer) *leaf
	tune func(*tls.Config) // what else is odd about it
	want string            // the error of the other side
}

func one(l leaf) *leaf { return &l }

// as issues a certificate of the trusted CA.
func as(change ...func(*x509.Certificate)) func(*testing.T, *issuer) *leaf {
	return func(t *testing.T, ca *issuer) *leaf { return one(ca.issue(t, change...)) }
}

// ofAnother issues a certificate of an unknown CA.
func ofAnother(name string, change ...func(*x509.Certificate)) func(*testing.T, *issuer) *leaf {
	return func(t *testing.T, _ *issuer) *leaf { return one(newRoot(t, name).issue(t, change...)) }
}

// below issues a certificate of an intermediate CA.
func below(change func(*x509.Certificate), of ...func(*x509.Certificate)) func(*testing.T, *issuer) *leaf {
	return func(t *testing.T, ca *issuer) *leaf { return one(newIssuer(t, ca, "between", change).issue(t, of...)) }
}

// selfSigned issues a self-signed certificate.
func selfSigned(change ...func(*x509.Certificate)) func(*testing.T, *issuer) *leaf {
	return func(t *testing.T, ca *issuer) *leaf {
		l := ca.issue(t, change...)
		pair, err := tls.X509KeyPair(l.certText, l.keyText)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificate(rand.Reader, l.cert, l.cert, l.cert.PublicKey, pair.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		l.certText = pemText("CERTIFICATE", der)
		return &l
	}
}

// withoutChain issues a certificate of an intermediate CA without the CA's certificate.
func withoutChain(change ...func(*x509.Certificate)) func(*testing.T, *issuer) *leaf {
	return func(t *testing.T, ca *issuer) *leaf {
		between := newIssuer(t, ca, "between")
		between.chain = nil
		return one(between.issue(t, change...))
	}
}

func noCA(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature }

func number(n int64) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.SerialNumber = big.NewInt(n) }
}

func numbered(n int64) *x509.Certificate { return &x509.Certificate{SerialNumber: big.NewInt(n)} }

// otherKey signs handshakes with a key that is not the certificate's.
func otherKey(t testing.TB) func(*tls.Config) {
	return func(c *tls.Config) {
		wrong := c.Certificates[0]
		wrong.PrivateKey = newKey(t)
		c.Certificates = []tls.Certificate{wrong}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &wrong, nil }
	}
}

func only(version uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
}

func permittedURI(domain string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.PermittedURIDomains = []string{domain} }
}

func permittedHost(domain string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.PermittedDNSDomains = []string{domain} }
}

// TestRejectedClients connects to a manager that requires a certificate.
func TestRejectedClients(t *testing.T) {
	owner := uris(cacheAID)
	for _, a := range []attack{
		{"no certificate", func(*testing.T, *issuer) *leaf { return nil }, nil, "client didn't provide a certificate"},
		{"another CA", ofAnother("other", owner), nil, "certificate signed by unknown authority"},
		{"another CA of the same name", ofAnother("ours", owner), nil, "certificate signed by unknown authority"},
		{"self-signed", selfSigned(owner), nil, "certificate signed by unknown authority"},
		{"expired", as(owner, valid(-48*time.Hour, -time.Second)), nil, "certificate has expired or is not yet valid"},
		{"not yet valid", as(owner, valid(time.Minute, time.Hour)), nil, "certificate has expired or is not yet valid"},
		{"for servers only", as(owner, usages(x509.ExtKeyUsageServerAuth)), nil, "incompatible key usage"},
		{"for e-mail only", as(owner, usages(x509.ExtKeyUsageEmailProtection)), nil, "incompatible key usage"},
		{"revoked", as(owner, number(4711)), nil, "was revoked by its issuer"},
		{"intermediate missing", withoutChain(owner), nil, "certificate signed by unknown authority"},
		{"intermediate expired", below(valid(-2*time.Hour, -time.Hour), owner), nil, "certificate has expired or is not yet valid"},
		{"intermediate revoked", below(number(4712), owner), nil, "was revoked by its issuer"},
		{"intermediate is no CA", below(noCA, owner), nil, "parent certificate cannot sign this kind of certificate"},
		{"intermediate for servers only", below(usages(x509.ExtKeyUsageServerAuth), owner), nil, "incompatible key usage"},
		{"URI outside of its CA's constraint", below(permittedURI("other.org"), owner), nil, "is not permitted by any constraint"},
		{"host outside of its CA's constraint", below(permittedHost("other.org"), hosts("m1.example.org")), nil, "is not permitted by any constraint"},
		{"path too long", func(t *testing.T, ca *issuer) *leaf {
			short := newIssuer(t, ca, "short", func(c *x509.Certificate) { c.MaxPathLenZero = true })
			return one(newIssuer(t, short, "below").issue(t, owner))
		}, nil, "too many intermediates"},
		{"a CA's own", as(owner, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), nil, "it is the certificate of a CA"},
		{"may sign certificates", as(owner, func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }), nil, "it is the certificate of a CA"},
		{"two SPIFFE IDs", as(uris(cacheAID, m1ID)), nil, "exactly one URI"},
		{"a SPIFFE ID and another URI", as(uris(cacheAID, "https://example.org/")), nil, "exactly one URI"},
		{"a SPIFFE ID with dots", as(uris("spiffe://example.org/owner/../manager/m1")), nil, "is not a SPIFFE ID"},
		{"a SPIFFE ID with an escape", as(uris("spiffe://example.org/owner/a%2Fb")), nil, "is not a SPIFFE ID"},
		{"a SPIFFE ID with a query", as(uris(cacheAID + "?a")), nil, "is not a SPIFFE ID"},
		{"a SPIFFE ID without a path", as(uris("spiffe://example.org")), nil, "is not a SPIFFE ID"},
		{"a critical extension", as(owner, func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
		}), nil, "unhandled critical extension"},
		{"TLS 1.2 only", as(owner), only(tls.VersionTLS12), "client offered only unsupported versions"},
		{"TLS 1.0 only", as(owner), only(tls.VersionTLS10), "client offered only unsupported versions"},
		{"a key that is not its own", as(owner), otherKey(t), "invalid signature by the client certificate"},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newRoot(t, "ours")
				manager := newPlace(t, ca.issue(t, uris(m1ID), hosts("m1")), ca)
				manager.revoke(ca.revoke(t, nil, numbered(4711), numbered(4712)))
				server := manager.open().ServerWith(secure.Required)
				client := raw(a.make(t, ca), a.tune)
				clientErr, serverErr := shake(t, client, server, "m1:7400")
				if clientErr == nil {
					t.Error("the client was accepted")
				}
				if serverErr == nil || !strings.Contains(serverErr.Error(), a.want) {
					t.Errorf("the server's error is %v, want %q", serverErr, a.want)
				}
				if len(manager.log.Lines("connection rejected")) != 1 {
					t.Error("the rejected connection is not logged once:", manager.log)
				}
			})
		})
	}
}

// TestRejectedServers connects to servers that impersonate the manager m1.
func TestRejectedServers(t *testing.T) {
	manager := uris(m1ID)
	commonName := func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "m1"} }
	for _, a := range []attack{
		{"another CA", ofAnother("other", manager, hosts("m1")), nil, "leads to none of the roots in"},
		{"another CA of the same name", ofAnother("ours", manager, hosts("m1")), nil, "leads to none of the roots in"},
		{"self-signed", selfSigned(manager, hosts("m1")), nil, "leads to none of the roots in"},
		{"expired", as(manager, hosts("m1"), valid(-48*time.Hour, -time.Second)), nil, "certificate has expired or is not yet valid"},
		{"not yet valid", as(manager, hosts("m1"), valid(time.Minute, time.Hour)), nil, "certificate has expired or is not yet valid"},
		{"another host", as(manager, hosts("m2")), nil, "is not for this host: dial a host name"},
		{"another host below ours", as(manager, hosts("m1.example.org")), nil, "is not for this host"},
		{"right common name, another host", as(commonName, hosts("m2")), nil, "is not for this host"},
		{"right common name, no host", as(commonName), nil, "certificate relies on legacy Common Name field"},
		{"no host, SPIFFE", as(manager), nil, "set Servers to that identity"},
		{"an owner", as(uris(cacheAID), hosts("cache-a")), nil, "is not for this host"},
		{"for clients only", as(manager, hosts("m1"), usages(x509.ExtKeyUsageClientAuth)), nil, "is not for servers"},
		{"revoked", as(manager, hosts("m1"), number(4711)), nil, "was revoked by its issuer"},
		{"intermediate missing", withoutChain(manager, hosts("m1")), nil, "leads to none of the roots in"},
		{"intermediate is no CA", below(noCA, manager, hosts("m1")), nil, "parent certificate cannot sign this kind of certificate"},
		{"intermediate revoked", below(number(4712), manager, hosts("m1")), nil, "was revoked by its issuer"},
		{"host outside of its CA's constraint", below(permittedHost("other.org"), hosts("m1")), nil, "is not permitted by any constraint"},
		{"a CA's own", as(hosts("m1"), func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), nil, "it is the certificate of a CA"},
		{"two SPIFFE IDs", as(uris(m1ID, cacheAID), hosts("m1")), nil, "exactly one URI"},
		{"TLS 1.2 only", as(manager, hosts("m1")), only(tls.VersionTLS12), "protocol version not supported"},
		{"a key that is not its own", as(manager, hosts("m1")), otherKey(t), "invalid signature by the server certificate"},
	} {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newRoot(t, "ours")
				cache := newPlace(t, ca.issue(t, uris(cacheAID)), ca)
				cache.revoke(ca.revoke(t, nil, numbered(4711), numbered(4712)))
				clientErr, _ := shake(t, cache.open().Client(), raw(a.make(t, ca), a.tune), "m1:7400")
				if clientErr == nil || !strings.Contains(clientErr.Error(), a.want) {
					t.Errorf("the client's error is %v, want %q", clientErr, a.want)
				}
			})
		})
	}
}

// TestServers: with Config.Servers, a client verifies the identity and not the host name.
func TestServers(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []secure.Identity
		server  []func(*x509.Certificate)
		addr    string
		want    string // of the error, "" for none
	}{
		{"the name dialled", nil, []func(*x509.Certificate){hosts("m1")}, "m1:7400", ""},
		{"the name dialled, in capitals", nil, []func(*x509.Certificate){hosts("m1")}, "M1:7400", ""},
		{"an address", nil, []func(*x509.Certificate){hosts("10.0.0.1")}, "10.0.0.1:7400", ""},
		{"an address of version 6", nil, []func(*x509.Certificate){hosts("2001:db8::1")}, "[2001:db8::1]:7400", ""},
		{"another address", nil, []func(*x509.Certificate){hosts("10.0.0.1")}, "10.0.0.2:7400", "is not for this host"},
		{"an address as a host name", nil, []func(*x509.Certificate){func(c *x509.Certificate) { c.DNSNames = []string{"10.0.0.1"} }}, "10.0.0.1:7400", "is not for this host"},
		{"a wildcard", nil, []func(*x509.Certificate){hosts("*.example.org")}, "m1.example.org:7400", ""},
		{"an identity", []secure.Identity{m1ID}, []func(*x509.Certificate){uris(m1ID)}, "10.9.9.9:7400", ""},
		{"one of two", []secure.Identity{"dns:m2", m1ID}, []func(*x509.Certificate){uris(m1ID)}, "m1:7400", ""},
		{"a host's identity", []secure.Identity{"dns:m1"}, []func(*x509.Certificate){hosts("m1")}, "10.9.9.9:7400", ""},
		{"any manager", []secure.Identity{"spiffe://example.org/manager/{name}"}, []func(*x509.Certificate){uris(m1ID)}, "m1:7400", ""},
		{"an owner, right name", []secure.Identity{m1ID}, []func(*x509.Certificate){uris(cacheAID), hosts("m1")}, "m1:7400", "the server is " + cacheAID + " or dns:m1, want " + m1ID},
		{"an owner for a manager", []secure.Identity{"spiffe://example.org/manager/{name}"}, []func(*x509.Certificate){uris(cacheAID)}, "m1:7400", "want spiffe://example.org/manager/{name}"},
		{"no identity", []secure.Identity{m1ID}, []func(*x509.Certificate){hosts("10.0.0.1")}, "m1:7400", "the server is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newRoot(t, "ours")
				cache := newPlace(t, ca.issue(t, uris(cacheAID)), ca)
				cache.conf.Servers = test.servers
				manager := newPlace(t, ca.issue(t, test.server...), ca)
				clientErr, serverErr := shake(t, cache.open().Client(), manager.open().Server(), test.addr)
				if test.want == "" && (clientErr != nil || serverErr != nil) {
					t.Fatalf("client: %v; server: %v", clientErr, serverErr)
				}
				if test.want != "" && (clientErr == nil || !strings.Contains(clientErr.Error(), test.want)) {
					t.Errorf("the client's error is %v, want %q", clientErr, test.want)
				}
			})
		})
	}
}

// TestClientAuth: which clients with a valid certificate or none may connect.
func TestClientAuth(t *testing.T) {
	manager := secure.Identity("spiffe://example.org/manager/{name}")
	for _, test := range []struct {
		name    string
		auth    secure.ClientAuth
		clients []secure.Identity
		client  func(*testing.T, *issuer) *leaf
		want    string // of the server's error, "" for none
	}{
		{"if given, given", secure.IfGiven, nil, as(uris(cacheAID)), ""},
		{"if given, of an intermediate CA", secure.IfGiven, nil, below(func(*x509.Certificate) {}, uris(cacheAID)), ""},
		{"if given, none", secure.IfGiven, nil, nil, ""},
		{"if given, a stranger's", secure.IfGiven, nil, ofAnother("other", uris(cacheAID)), "unknown authority"},
		{"unasked, a stranger's", secure.Unasked, nil, ofAnother("other", uris(cacheAID)), ""},
		{"required, given", secure.Required, nil, as(uris(cacheAID)), ""},
		{"required, none", secure.Required, nil, nil, "client didn't provide a certificate"},
		{"managers only, a manager", secure.IfGiven, []secure.Identity{manager}, as(uris(m1ID)), ""},
		{"managers only, an owner", secure.IfGiven, []secure.Identity{manager}, as(uris(cacheAID)), "the client is " + cacheAID + ", want " + string(manager)},
		{"managers only, none", secure.Unasked, []secure.Identity{manager}, nil, "client didn't provide a certificate"},
		{"an unknown value is the strictest", secure.ClientAuth(99), nil, nil, "client didn't provide a certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newRoot(t, "ours")
				var shown *leaf
				if test.client != nil {
					shown = test.client(t, ca)
				}
				server := newPlace(t, ca.issue(t, uris(m1ID), hosts("m1")), ca).open().ServerWith(test.auth, test.clients...)
				clientErr, serverErr := shake(t, raw(shown, nil), server, "m1:7400")
				if test.want == "" && (clientErr != nil || serverErr != nil) {
					t.Fatalf("client: %v; server: %v", clientErr, serverErr)
				}
				if test.want != "" && (serverErr == nil || clientErr == nil || !strings.Contains(serverErr.Error(), test.want)) {
					t.Errorf("the server's error is %v, the client's %v, want %q", serverErr, clientErr, test.want)
				}
			})
		})
	}
}
