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

// A handshakeCase is a client that is refused before it has said anything.
type handshakeCase struct {
	name string
	show func(t *testing.T, k *keep) *tls.Certificate
	tune func(*tls.Config)
	want string // the alert; several may be right
}

// by has an issuer sign a certificate.
func by(whose func(*keep) *issuer, change ...func(*x509.Certificate)) func(*testing.T, *keep) *tls.Certificate {
	return func(t *testing.T, k *keep) *tls.Certificate {
		t.Helper()
		return whose(k).sign(t, change...)
	}
}

func ours(k *keep) *issuer   { return k.root }
func house(k *keep) *issuer  { return k.house }
func fallen(k *keep) *issuer { return k.fallen }

// of is the certificate of a party.
func of(party string) func(*testing.T, *keep) *tls.Certificate {
	return func(t *testing.T, k *keep) *tls.Certificate {
		t.Helper()
		return k.certificate(t, party)
	}
}

func versions(least, most uint16) func(*tls.Config) {
	return func(c *tls.Config) { c.MinVersion, c.MaxVersion = least, most }
}

// handshakes are the cases for every port that wants TLS.
func handshakes() []handshakeCase {
	chief := is("operator/chief")
	const unknown, bad, expired, version = "unknown certificate authority", "bad certificate", "expired certificate", "protocol version not supported"
	return []handshakeCase{
		{name: "a certificate of another CA", want: unknown, show: func(t *testing.T, _ *keep) *tls.Certificate {
			return newIssuer(t, "another", nil).sign(t, chief)
		}},
		{name: "a certificate of another CA with the name of ours", want: unknown, show: func(t *testing.T, k *keep) *tls.Certificate {
			imitation := *newIssuer(t, "imitation", nil)
			copied := *k.root.cert
			copied.PublicKey = imitation.cert.PublicKey
			return (&issuer{cert: &copied, key: imitation.key}).sign(t, chief)
		}},
		{name: "a certificate that signs itself", want: unknown, show: func(t *testing.T, _ *keep) *tls.Certificate {
			return (&issuer{}).sign(t, chief)
		}},
		{name: "a certificate that has expired", want: expired, show: by(ours, chief, valid(-2*time.Hour, -time.Minute))},
		{name: "a certificate that is not yet valid", want: expired, show: by(ours, chief, valid(time.Minute, time.Hour))},
		{name: "a certificate for servers only", want: bad, show: by(ours, chief, usage(x509.ExtKeyUsageServerAuth))},
		{name: "a certificate for signing code", want: bad, show: by(ours, chief, usage(x509.ExtKeyUsageCodeSigning))},
		{name: "a certificate of a CA", want: bad + "|" + unknown, show: by(house, chief, func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		})},
		{name: "a certificate that an owner has signed", want: bad + "|" + unknown, show: func(t *testing.T, k *keep) *tls.Certificate {
			owner := k.root.sign(t)
			made := (&issuer{cert: owner.Leaf, key: readSigner(owner)}).sign(t, chief)
			made.Certificate = append(made.Certificate, owner.Certificate...)
			return made
		}},
		{name: "a certificate whose CA is missing", want: unknown, show: func(t *testing.T, k *keep) *tls.Certificate {
			made := k.wing.sign(t, chief)
			made.Certificate = made.Certificate[:1]
			return made
		}},
		{name: "a certificate whose CA was revoked", want: bad, show: by(fallen, chief)},
		{name: "an identity outside of the CA's domain", want: bad, show: by(ours, uris(&url.URL{Scheme: "spiffe", Host: "elsewhere.test", Path: "/operator/chief"}))},
		{name: "two SPIFFE IDs", want: bad, show: by(ours, uris(identity("owner/other/mallory"), identity("operator/chief")))},
		{name: "a SPIFFE ID and another URI", want: bad, show: by(house, uris(identity("operator/chief"), &url.URL{Scheme: "https", Host: "house.test", Path: "/"}))},
		{name: "a SPIFFE ID with escapes", want: bad, show: by(house, uris(&url.URL{Scheme: "spiffe", Host: domain, Path: "/operator/chief", RawPath: "/operator/%63hief"}))},
		{name: "a SPIFFE ID with dots", want: bad, show: by(house, uris(identity("owner/../operator/chief")))},
		{name: "a SPIFFE ID with a question", want: bad, show: by(house, uris(&url.URL{Scheme: "spiffe", Host: domain, Path: "/operator/chief", RawQuery: "x"}))},
		{name: "a SPIFFE ID that is a pattern", want: bad, show: by(house, is("owner/honest/{name}"))},
		{name: "an honest party's certificate, without its key", want: "error decrypting message", show: func(t *testing.T, k *keep) *tls.Certificate {
			stolen := k.certificate(t, "operator/chief")
			stolen.PrivateKey = k.root.sign(t).PrivateKey
			return stolen
		}},
		{name: "TLS 1.2", want: version, show: of("operator/chief"), tune: versions(tls.VersionTLS12, tls.VersionTLS12)},
		{name: "TLS 1.1", want: version, show: of("operator/chief"), tune: versions(tls.VersionTLS11, tls.VersionTLS11)},
		{name: "TLS 1.0 to 1.2", want: version, show: of("operator/chief"), tune: versions(tls.VersionTLS10, tls.VersionTLS12)},
	}
}

// shake shakes hands, and returns the alert that comes of it: the server looks at a
// certificate when the client has finished.
func shake(t *testing.T, addr string, config *tls.Config) string {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // nothing is left to be said
	if err := raw.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, config)
	err = conn.Handshake()
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return alertOf(err)
}

// alertOf is what the other side has said about an end.
func alertOf(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return "an answer"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "silence"
	case errors.Is(err, io.EOF):
		return "closed"
	}
	if _, alert, ok := strings.Cut(err.Error(), "remote error: tls: "); ok {
		return alert
	}
	return err.Error()
}

// oneOf reports whether what has come begins with one of what may come.
func oneOf(got, want string) bool {
	for w := range strings.SplitSeq(want, "|") {
		if strings.HasPrefix(got, w) {
			return true
		}
	}
	return false
}

// refusesHandshakes tries all of them at an address.
func (c *castle) refusesHandshakes(t *testing.T, k *keep, where, addr string, protocols ...string) {
	t.Helper()
	for _, test := range handshakes() {
		c.attack(t, where+": "+test.name, func(t *testing.T) {
			config := k.showing(test.show(t, k), protocols...)
			if test.tune != nil {
				test.tune(config)
			}
			if got := shake(t, addr, config); !oneOf(got, test.want) {
				t.Errorf("what comes of it: %s; want %s", got, test.want)
			}
		})
	}
}

// Nobody gets through a handshake who does not belong here.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	c := newCastle(t, settings{secured: k})
	c.refusesHandshakes(t, k, "manager", c.addr, "h2")
	c.refusesHandshakes(t, k, "pages", c.http, "http/1.1")
	for _, test := range []struct{ name, addr, say, want string }{
		{"HTTP/2 in plain text", c.addr, http2.ClientPreface, "closed"},
		{"HTTP/1.1 in plain text", c.addr, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "closed"},
		{"ssh", c.addr, "SSH-2.0-OpenSSH_9.9\r\n", "closed"},
		{"a record that is too long", c.addr, "\x16\x03\x01\xff\xff" + strings.Repeat("\x00", 1000), "alert 22|closed"},
		{"a hello that is too long", c.addr, "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("\x00", 1<<14-4), "alert 80|alert 47|alert 50|closed"},
		{"a hello that makes no sense", c.addr, "\x16\x03\x01\x00\x08\x01\x00\x00\x04\xff\xff\xff\xff", "alert 10|alert 50|alert 47"},
		{"data before the hello", c.addr, "\x17\x03\x03\x00\x05hello", "closed"},
		{"an alert before the hello", c.addr, "\x15\x03\x03\x00\x02\x02\x00", "closed"},
		{"SSL 2.0", c.addr, "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + strings.Repeat("\x01", 40), "closed|alert"},
		{"SSL 3.0", c.addr, "\x16\x03\x00\x00\x2f\x01\x00\x00\x2b\x03\x00" + strings.Repeat("\x01", 32) + "\x00\x00\x02\x00\x35\x01\x00\x00\x00", "alert 70|alert 50"},
		{"pages: plain text", c.http, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.0 400"},
	} {
		c.attack(t, test.name, func(t *testing.T) {
			if got := hear(t, test.addr, test.say); !oneOf(got, test.want) {
				t.Errorf("what comes of it: %s; want %s", got, test.want)
			}
		})
	}
	for name, protocol := range map[string]string{"another protocol": "http/1.1", "no protocol": ""} {
		c.attack(t, name, func(t *testing.T) {
			config := k.showing(k.certificate(t, "operator/chief"), protocol)
			if protocol == "" {
				config.NextProtos = nil
			}
			if got := shake(t, c.addr, config); !oneOf(got, "no application protocol|closed") {
				t.Errorf("what comes of it: %s", got)
			}
		})
	}
	c.attack(t, "a session of before", func(t *testing.T) {
		config := k.showing(k.certificate(t, "operator/chief"), "http/1.1")
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
				t.Error("it was taken up: its certificate was not looked at again")
			}
			_ = conn.Close() // it has ended
		}
	})
	for _, l := range c.lines(t) {
		if l.Msg == "connection rejected" {
			return
		}
	}
	t.Error("the log does not say that connections were refused")
}

// hear says something, and returns what the server says to it.
func hear(t *testing.T, addr, say string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be said
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, say) // it may have heard enough before the end
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

// readSigner is the key of somebody who signs though he should not.
func readSigner(cert *tls.Certificate) *ecdsa.PrivateKey { return cert.PrivateKey.(*ecdsa.PrivateKey) }
