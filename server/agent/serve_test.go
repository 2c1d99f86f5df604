package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// dial opens a connection to a program's agent.
func (p *program) dial(c *leaseholdtest.Cluster) net.Conn {
	p.t.Helper()
	conn, err := c.Node("caller").DialContext(p.t.Context(), "tcp", fmt.Sprintf("%s:%d", p.node.Name(), agentPort))
	if err != nil {
		p.t.Fatal(err)
	}
	return conn
}

// TestMissingBodyTimesOut: a request whose body does not arrive is rejected after a timeout.
func TestMissingBodyTimesOut(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a")
		conn := newProgram(t, c, "a").dial(c)
		defer conn.Close() //nolint:errcheck // cleanup only
		began := time.Now()
		if _, err := io.WriteString(conn, "POST /v1/owners HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(began.Add(10 * jsonapi.BodyTimeout)); err != nil {
			t.Fatal(err)
		}
		response, err := io.ReadAll(conn)
		if err != nil || time.Since(began) > 2*jsonapi.BodyTimeout || !strings.HasPrefix(string(response), "HTTP/1.1 400 ") {
			t.Errorf("after %v: %q, %v", time.Since(began), response, err)
		}
	})
}

// TestConnectionLimit: above the limit, a new connection replaces an idle one, or is closed if
// none is idle.
func TestConnectionLimit(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a", func(cfg *Config) { cfg.MaxConns = 1 })
		p := newProgram(t, c, "a")
		p.http.Timeout = time.Second
		silent, first := p.dial(c), p.dial(c)
		if _, err := first.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		if n, err := silent.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read from the idle connection: %d bytes, %v", n, err)
		}
		if status, err := p.call("GET", "/healthz", nil, new(struct{})); err == nil {
			t.Errorf("a second connection is served: %d", status)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		p.must("GET", "/healthz", nil, new(struct{}))
	})
}

// TestResponsesAreNotCached: the validity of a response counts from its request, so that caches
// must not store it.
func TestResponsesAreNotCached(t *testing.T) {
	a, err := New(Config{Managers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(t.Context())
	for name, serve := range map[string]func(http.ResponseWriter){
		"a response": func(w http.ResponseWriter) {
			a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7404/healthz", nil))
		},
		"an error": func(w http.ResponseWriter) {
			a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7404/nothing", nil))
		},
		"a stream": func(w http.ResponseWriter) { a.stream(w, func(out *stream) { out.send(alive{"alive"}) }) },
	} {
		w := httptest.NewRecorder()
		serve(w)
		for header, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}
