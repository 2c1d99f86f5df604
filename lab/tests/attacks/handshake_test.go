//go:build linux

package attacks

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A handshakeCase is a client that is refused during the handshake.
type handshakeCase struct {
	name string
	cert func(t *testing.T, k *authority) *tls.Certificate
	tune func(*tls.Config)
	want string // the alert, or several separated by "|"
}

// signedBy returns a certificate of an issuer.
func signedBy(whose func(*authority) *issuer, change ...func(*x509.Certificate)) func(*testing.T, *authority) *tls.Certificate {
	return func(t *testing.T, k *authority) *tls.Certificate {
		t.Helper()
		return whose(k).sign(t, change...)
	}
}

func rootCA(k *authority) *issuer    { return k.root }
func secondCA(k *authority) *issuer  { return k.secondCA }
func revokedCA(k *authority) *issuer { return k.revokedCA }

// certificateOf returns the certificate of a party.
func certificateOf(party string) func(*testing.T, *authority) *tls.Certificate {
	return func(t *testing.T, k *authority) *tls.Certificate {
		t.Helper()
		return k.certificate(t, party)
	}
}

func versions(least, most uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = least, most }
}

// handshakes are the cases for every TLS port.
func handshakes() []handshakeCase {
	chief := withIdentity("operator/chief")
	const unknown, bad, expired, version = "unknown certificate authority", "bad certificate", "expired certificate", "protocol version not supported"
	return []handshakeCase{
		{name: "a certificate of another CA", want: unknown, cert: func(t *testing.T, _ *authority) *tls.Certificate {
			return newIssuer(t, "another", nil).sign(t, chief)
		}},
		{name: "a certificate of another CA with the name of ours", want: unknown, cert: func(t *testing.T, k *authority) *tls.Certificate {
			imitation := *newIssuer(t, "imitation", nil)
			copied := *k.root.cert
			copied.PublicKey = imitation.cert.PublicKey
			return (&issuer{cert: &copied, key: imitation.key}).sign(t, chief)
		}},
		{name: "a self-signed certificate", want: unknown, cert: func(t *testing.T, _ *authority) *tls.Certificate {
			return (&issuer{}).sign(t, chief)
		}},
		{name: "an expired certificate", want: expired, cert: signedBy(rootCA, chief, withValidity(-2*time.Hour, -time.Minute))},
		{name: "a certificate that is not yet valid", want: expired, cert: signedBy(rootCA, chief, withValidity(time.Minute, time.Hour))},
		{name: "a certificate for servers only", want: bad, cert: signedBy(rootCA, chief, withUsage(x509.ExtKeyUsageServerAuth))},
		{name: "a certificate for signing code", want: bad, cert: signedBy(rootCA, chief, withUsage(x509.ExtKeyUsageCodeSigning))},
		{name: "a certificate of a CA", want: bad + "|" + unknown, cert: signedBy(secondCA, chief, func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		})},
		{name: "a certificate signed by an owner", want: bad + "|" + unknown, cert: func(t *testing.T, k *authority) *tls.Certificate {
			owner := k.root.sign(t)
			made := (&issuer{cert: owner.Leaf, key: signerOf(owner)}).sign(t, chief)
			made.Certificate = append(made.Certificate, owner.Certificate...)
			return made
		}},
		{name: "a certificate without its intermediate CA", want: unknown, cert: func(t *testing.T, k *authority) *tls.Certificate {
			made := k.intermediateCA.sign(t, chief)
			made.Certificate = made.Certificate[:1]
			return made
		}},
		{name: "a certificate of a revoked CA", want: bad, cert: signedBy(revokedCA, chief)},
		{name: "an identity outside of the CA's domain", want: bad, cert: signedBy(rootCA, withURIs(&url.URL{Scheme: "spiffe", Host: "elsewhere.test", Path: "/operator/chief"}))},
		{name: "two SPIFFE IDs", want: bad, cert: signedBy(rootCA, withURIs(spiffeID("owner/other/mallory"), spiffeID("operator/chief")))},
		{name: "a SPIFFE ID and another URI", want: bad, cert: signedBy(secondCA, withURIs(spiffeID("operator/chief"), &url.URL{Scheme: "https", Host: "house.test", Path: "/"}))},
		{name: "a SPIFFE ID with escapes", want: bad, cert: signedBy(secondCA, withURIs(&url.URL{Scheme: "spiffe", Host: domain, Path: "/operator/chief", RawPath: "/operator/%63hief"}))},
		{name: "a SPIFFE ID with dots", want: bad, cert: signedBy(secondCA, withURIs(spiffeID("owner/../operator/chief")))},
		{name: "a SPIFFE ID with a query", want: bad, cert: signedBy(secondCA, withURIs(&url.URL{Scheme: "spiffe", Host: domain, Path: "/operator/chief", RawQuery: "x"}))},
		{name: "a SPIFFE ID that is a pattern", want: bad, cert: signedBy(secondCA, withIdentity("owner/honest/{name}"))},
		{name: "another party's certificate with the wrong key", want: "error decrypting message", cert: func(t *testing.T, k *authority) *tls.Certificate {
			stolen := k.certificate(t, "operator/chief")
			stolen.PrivateKey = k.root.sign(t).PrivateKey
			return stolen
		}},
		{name: "TLS 1.2", want: version, cert: certificateOf("operator/chief"), tune: versions(tls.VersionTLS12, tls.VersionTLS12)},
		{name: "TLS 1.1", want: version, cert: certificateOf("operator/chief"), tune: versions(tls.VersionTLS11, tls.VersionTLS11)},
		{name: "TLS 1.0 to 1.2", want: version, cert: certificateOf("operator/chief"), tune: versions(tls.VersionTLS10, tls.VersionTLS12)},
	}
}

// handshake performs a handshake, and returns the server's alert. The server verifies the
// certificate after the client has finished, so that the alert may arrive with the first read.
func handshake(t *testing.T, addr string, config *tls.Config) string {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // the connection is no longer needed
	if err := raw.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, config)
	err = conn.Handshake()
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return alertOf(err)
}

// alertOf returns the alert in an error, or another description of the end.
func alertOf(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return "accepted"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF):
		return "closed"
	}
	if _, alert, ok := strings.Cut(err.Error(), "remote error: tls: "); ok {
		return alert
	}
	return err.Error()
}

// oneOf reports whether an outcome begins with one of the wanted ones, separated by "|".
func oneOf(got, want string) bool {
	for w := range strings.SplitSeq(want, "|") {
		if strings.HasPrefix(got, w) {
			return true
		}
	}
	return false
}

// refusesHandshakes runs all cases at an address.
func (c *testbed) refusesHandshakes(t *testing.T, k *authority, where, addr string, protocols ...string) {
	t.Helper()
	for _, test := range handshakes() {
		c.attack(t, where+": "+test.name, func(t *testing.T) {
			config := k.clientTLS(test.cert(t, k), protocols...)
			if test.tune != nil {
				test.tune(config)
			}
			if got := handshake(t, addr, config); !oneOf(got, test.want) {
				t.Errorf("outcome: %s; want %s", got, test.want)
			}
		})
	}
}

// TestHandshakes: invalid certificates, versions and records are refused.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	k := newAuthority(t)
	c := newTestbed(t, settings{secured: k})
	c.refusesHandshakes(t, k, "manager", c.addr, "h2")
	c.refusesHandshakes(t, k, "pages", c.http, "http/1.1")
	for _, test := range []struct{ name, addr, sendMessage, want string }{
		{"HTTP/2 in plain text", c.addr, http2.ClientPreface, "closed"},
		{"HTTP/1.1 in plain text", c.addr, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "closed"},
		{"ssh", c.addr, "SSH-2.0-OpenSSH_9.9\r\n", "closed"},
		{"an oversized record", c.addr, "\x16\x03\x01\xff\xff" + strings.Repeat("\x00", 1000), "alert 22|closed"},
		{"an oversized hello", c.addr, "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("\x00", 1<<14-4), "alert 80|alert 47|alert 50|closed"},
		{"a malformed hello", c.addr, "\x16\x03\x01\x00\x08\x01\x00\x00\x04\xff\xff\xff\xff", "alert 10|alert 50|alert 47"},
		{"data before the hello", c.addr, "\x17\x03\x03\x00\x05hello", "closed"},
		{"an alert before the hello", c.addr, "\x15\x03\x03\x00\x02\x02\x00", "closed"},
		{"SSL 2.0", c.addr, "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + strings.Repeat("\x01", 40), "closed|alert"},
		{"SSL 3.0", c.addr, "\x16\x03\x00\x00\x2f\x01\x00\x00\x2b\x03\x00" + strings.Repeat("\x01", 32) + "\x00\x00\x02\x00\x35\x01\x00\x00\x00", "alert 70|alert 50"},
		{"pages: plain text", c.http, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.0 400"},
	} {
		c.attack(t, test.name, func(t *testing.T) {
			if got := exchange(t, test.addr, test.sendMessage); !oneOf(got, test.want) {
				t.Errorf("outcome: %s; want %s", got, test.want)
			}
		})
	}
	for name, protocol := range map[string]string{"another protocol": "http/1.1", "no protocol": ""} {
		c.attack(t, name, func(t *testing.T) {
			config := k.clientTLS(k.certificate(t, "operator/chief"), protocol)
			if protocol == "" {
				config.NextProtos = nil
			}
			if got := handshake(t, c.addr, config); !oneOf(got, "no application protocol|closed") {
				t.Errorf("outcome: %s", got)
			}
		})
	}
	c.attack(t, "session resumption", func(t *testing.T) {
		config := k.clientTLS(k.certificate(t, "operator/chief"), "http/1.1")
		config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		for range 3 {
			conn, err := tls.Dial("tcp", c.http, config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			if err == nil {
				_, err = io.Copy(io.Discard, conn)
			}
			if err != nil {
				t.Error(err)
			}
			if conn.ConnectionState().DidResume {
				t.Error("the session was resumed without verifying the certificate again")
			}
			_ = conn.Close() // the server has closed it
		}
	})
	for _, l := range c.lines(t) {
		if l.Msg == "connection rejected" {
			return
		}
	}
	t.Error("refused connections are not logged")
}

// exchange sends bytes, and returns the server's response: an alert, the first bytes, or
// "closed".
func exchange(t *testing.T, addr, sendMessage string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the connection is no longer needed
	if err := conn.SetDeadline(time.Now().Add(eventTimeout)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, sendMessage) // the server may close before it has read all
	answer := make([]byte, 64)
	n, err := io.ReadAtLeast(conn, answer, 7)
	switch {
	case n >= 7 && answer[0] == 0x15:
		return fmt.Sprintf("alert %d", answer[6])
	case n > 0:
		return string(answer[:n])
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return err.Error()
	}
	return "closed"
}

// signerOf returns the private key of a certificate that is no CA.
func signerOf(cert *tls.Certificate) *ecdsa.PrivateKey { return cert.PrivateKey.(*ecdsa.PrivateKey) }
