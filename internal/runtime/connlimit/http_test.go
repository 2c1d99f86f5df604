package connlimit

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serveHTTP runs Serve on a loopback address.
func serveHTTP(t *testing.T, server *http.Server, cfg Config) (addr string) {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(server, at, cfg) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return at.Addr().String()
}

// connectAndWrite returns a connection that has sent data.
func connectAndWrite(t *testing.T, addr, data string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, data); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A connection with a complete header outlives the handshake timeout; one with a partial header does not.
func TestHTTPHeaderTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(slow)}
		ended := make(chan error, 1)
		go func() { ended <- Serve(server, d, Config{}) }()
		conn := d.connect("10.0.0.1")
		go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }()
		for _, partial := range []string{"", "G", "GET / HTTP/1.1\r\nHost: localhost\r\nX"} {
			half, since := d.connect("10.0.0.1"), time.Now()
			go func() { _, _ = io.WriteString(half, partial) }()
			if reply, err := io.ReadAll(half); err != nil || len(reply) > 0 || time.Since(since) != defaultTimeout {
				t.Errorf("%q: reply %q after %v, %v", partial, reply, time.Since(since), err)
			}
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); string(body) != "done" || err != nil {
			t.Errorf("answer %q, %v", body, err)
		}
		_ = answer.Body.Close() // it was read
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// slow replies long after the handshake timeout.
func slow(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(time.Minute)
	_, _ = io.WriteString(w, "done")
}

// With a TLSConfig the handshake timeout covers TLS.
func TestHTTPSHandshakeTimeout(t *testing.T) {
	borrowed := httptest.NewUnstartedServer(nil)
	borrowed.StartTLS()
	defer borrowed.Close()
	trusts := borrowed.Client().Transport.(*http.Transport).TLSClientConfig
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		server := &http.Server{TLSConfig: borrowed.TLS.Clone(), ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(slow)}
		ended := make(chan error, 1)
		go func() { ended <- Serve(server, d, Config{}) }()
		half := d.connect("10.0.0.1")
		go func() { _, _ = io.WriteString(half, "\x16\x03\x01") }()
		transport := &http.Transport{TLSClientConfig: trusts.Clone(), DialContext: func(context.Context, string, string) (net.Conn, error) {
			return d.connect("10.0.0.2"), nil
		}}
		transport.TLSClientConfig.Time = func() time.Time { return time.Unix(2e9, 0) } // synctest starts in 2000
		answer, err := (&http.Client{Transport: transport}).Get("https://example.com")
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); string(body) != "done" || err != nil {
			t.Errorf("answer %q, %v", body, err)
		}
		_ = answer.Body.Close() // it was read
		if !closed(t, half) {
			t.Error("half a handshake is not closed")
		}
		transport.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// The client receives a reply although the server has not read the request: the server calls CloseWrite first.
func TestReplyToUnreadRequest(t *testing.T) {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})}
	addr := serveHTTP(t, server, Config{})
	conn := connectAndWrite(t, addr, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
	for range 10 {
		if _, err := io.WriteString(conn, strings.Repeat("x", 1<<16)); err != nil {
			break // the server does not read it
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it has none
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", answer.StatusCode)
	}
}

// net/http does not decompress request bodies.
func TestBodiesAreNotDecoded(t *testing.T) {
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	read := make(chan int, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		read <- int(n)
	})}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+serveHTTP(t, server, Config{}), strings.NewReader(packed.String()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it has none
	if got := <-read; got != packed.Len() {
		t.Errorf("%d bytes were read, %d were sent", got, packed.Len())
	}
}
