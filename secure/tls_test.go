package secure_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/secure"
)

// serveHTTP serves on the loopback interface and returns the protocol and identity of the
// caller.
func serveHTTP(t *testing.T, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		TLSConfig:         config,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // of handshakes that must fail
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := "anonymous"
			if len(r.TLS.VerifiedChains) > 0 {
				who = string(secure.Identities(r.TLS.VerifiedChains[0][0])[0])
			}
			_, _ = io.WriteString(w, r.Proto+" "+who)
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func get(t *testing.T, transport *http.Transport, url string) (string, error) {
	t.Helper()
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestHTTP(t *testing.T) {
	ca := newRoot(t, "ours")
	server := newPlace(t, ca.issue(t, uris(m1ID), hosts("localhost", "127.0.0.1")), ca).open()
	client := newPlace(t, ca.issue(t, uris(cacheAID)), ca).open()
	port := serveHTTP(t, server.ServerTLS(secure.IfGiven))
	plain := server.ServerTLS(secure.IfGiven)
	plain.NextProtos = []string{"http/1.1"}
	oldPort := serveHTTP(t, plain)
	for _, test := range []struct {
		name      string
		transport *http.Transport
		url       string
		want, err string
	}{
		{"by name", &http.Transport{TLSClientConfig: client.ClientTLS()}, "https://localhost:" + port, "HTTP/1.1 " + cacheAID, ""},
		{"HTTP/2", &http.Transport{TLSClientConfig: client.ClientTLS(), ForceAttemptHTTP2: true}, "https://localhost:" + port, "HTTP/2.0 " + cacheAID, ""},
		{"HTTP/2 with a server of HTTP/1.1", &http.Transport{TLSClientConfig: client.ClientTLS(), ForceAttemptHTTP2: true}, "https://localhost:" + oldPort, "HTTP/1.1 " + cacheAID, ""},
		{"by address", &http.Transport{TLSClientConfig: client.ClientTLS()}, "https://127.0.0.1:" + port, "", "use Keeper.DialTLS, or set Servers"},
		{"by address, with DialTLS", &http.Transport{DialTLSContext: client.DialTLS}, "https://127.0.0.1:" + port, "HTTP/1.1 " + cacheAID, ""},
		{"by address, with Servers", &http.Transport{TLSClientConfig: client.ClientTLS(m1ID)}, "https://127.0.0.1:" + port, "HTTP/1.1 " + cacheAID, ""},
		{"other Servers", &http.Transport{TLSClientConfig: client.ClientTLS(cacheAID)}, "https://localhost:" + port, "", "the server is " + m1ID},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := get(t, test.transport, test.url)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v, want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}

// TestNoResumption: sessions are not resumed, because they would not be verified against the
// current roots and lists.
func TestNoResumption(t *testing.T) {
	ca := newRoot(t, "ours")
	server := newPlace(t, ca.issue(t, uris(m1ID), hosts("localhost")), ca).open()
	client := newPlace(t, ca.issue(t, uris(cacheAID)), ca).open()
	port := serveHTTP(t, server.ServerTLS(secure.Required))
	config := client.ClientTLS()
	config.ClientSessionCache = tls.NewLRUClientSessionCache(8) // a client that would like to
	for range 2 {
		conn, err := tls.Dial("tcp", "localhost:"+port, config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		if conn.ConnectionState().DidResume {
			t.Error("the session was resumed")
		}
		_ = conn.Close()
	}
}

// TestWithoutCertificate: a Keeper with only roots is an anonymous client and cannot serve.
func TestWithoutCertificate(t *testing.T) {
	ca := newRoot(t, "ours")
	server := newPlace(t, ca.issue(t, uris(m1ID), hosts("m1")), ca).open()
	rootsOnly := newPlace(t, leaf{}, ca).open()
	if clientErr, serverErr := shake(t, rootsOnly.Client(), server.Server(), "m1:7400"); clientErr != nil || serverErr != nil {
		t.Error(clientErr, serverErr)
	}
	if _, serverErr := shake(t, server.Client(), rootsOnly.Server(), "m1:7400"); serverErr == nil || !strings.Contains(serverErr.Error(), "a server needs a certificate") {
		t.Error(serverErr)
	}
	if !rootsOnly.Expires().IsZero() || len(rootsOnly.Describe().Identities) != 0 || len(rootsOnly.Check()) != 0 {
		t.Error(rootsOnly.Expires(), rootsOnly.Describe(), rootsOnly.Check())
	}
}

// TestRejectionLogIsLimited: many rejected connections have few lines in the log.
func TestRejectionLogIsLimited(t *testing.T) {
	ca, stranger := newRoot(t, "ours"), newRoot(t, "stranger").issue(t)
	p := newPlace(t, ca.issue(t, uris(m1ID), hosts("m1")), ca)
	server := p.open().Server()
	const flood = 20
	before := time.Now()
	for range flood {
		if _, err := shake(t, raw(&stranger, nil), server, "m1:7400"); err == nil {
			t.Fatal("a client of an unknown CA was accepted")
		}
	}
	if n, most := len(p.log.Lines("connection rejected")), 1+int(time.Since(before)/time.Second); n < 1 || n > most {
		t.Errorf("%d lines, want 1 to %d", n, most)
	}
}
