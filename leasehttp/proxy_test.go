package leasehttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// behind runs a test with one server and a gateway.
func behind(t *testing.T, handler http.HandlerFunc, cfg leasehttp.TransportConfig, proxy leasehttp.ProxyConfig, test func(t *testing.T, c *leaseholdtest.Cluster, caller *http.Transport)) {
	t.Helper()
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join(t, c.Node("a"), handler)
		c.Settle()
		startGateway(t, c, cfg, proxy)
		test(t, c, base(c.Node("caller")))
	})
}

func TestProxyForwards(t *testing.T) {
	var seen *http.Request
	behind(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r.Clone(context.Background())
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Own", "1")
		w.Header().Set("Leasehold-Own", "1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(body)
	}, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{}, func(t *testing.T, _ *leaseholdtest.Cluster, caller *http.Transport) {
		r := request(t, "POST", gateway+"/x?a=b", "hello")
		r.Host = "service.example.com"
		for name, value := range map[string]string{
			"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil", "Forwarded": "for=6.6.6.6", "X-Real": "1",
			"Leasehold-Key": "0000000000000000", "Leasehold-Refused": "x", "Proxy-Authorization": "secret",
			"Connection": "X-Hop, Leasehold-Key", "X-Hop": "1",
		} {
			r.Header.Set(name, value)
		}
		got := do(t, caller, r)
		if got.status != http.StatusAccepted || got.body != "hello" || got.header.Get("X-Own") != "1" || got.header.Get("Leasehold-Own") != "" {
			t.Errorf("%v", got)
		}
		forwarded := http.Header{}
		for name, values := range seen.Header {
			if strings.HasPrefix(name, "X-") || strings.HasPrefix(name, "Leasehold-") || strings.HasPrefix(name, "Proxy") || name == "Forwarded" {
				forwarded[name] = values
			}
		}
		if diff := cmp.Diff(http.Header{
			"X-User": {alice}, "X-Real": {"1"}, "Leasehold-Key": {leasehold.KeyOf(alice).String()},
			"X-Forwarded-For": {"caller"}, "X-Forwarded-Host": {"service.example.com"}, "X-Forwarded-Proto": {"http"},
		}, forwarded); diff != "" {
			t.Error(diff)
		}
		if seen.Host != "service.example.com" || seen.RequestURI != "/x?a=b" || seen.ContentLength != 5 {
			t.Errorf("%s %s, %d bytes", seen.Host, seen.RequestURI, seen.ContentLength)
		}
	})
}

func TestProxyTrustsForwarded(t *testing.T) {
	behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Host"], r.Header["X-Forwarded-Proto"])
	}, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{TrustForwarded: true}, func(t *testing.T, _ *leaseholdtest.Cluster, caller *http.Transport) {
		r := request(t, "GET", gateway, "")
		r.Header.Set("X-Forwarded-For", "1.2.3.4")
		r.Header.Set("X-Forwarded-Proto", "https")
		if got := do(t, caller, r); got.body != "[1.2.3.4, caller] [gateway:8080] [https]" {
			t.Errorf("%q", got.body)
		}
	})
}

// Each failure has its status, a body with the error, and the header that distinguishes it from a
// server's response.
func TestProxyFailures(t *testing.T) {
	const limit = 1000
	post := func(n int) *http.Request {
		return request(t, "POST", gateway, strings.Repeat("x", n))
	}
	streamed := post(0)
	streamed.Body, streamed.GetBody, streamed.ContentLength = unknown{strings.NewReader(strings.Repeat("x", 2*limit))}, nil, -1
	keyless := post(1)
	keyless.Header.Del("X-User")
	hidden := post(1)
	hidden.Header.Set("Connection", "X-User")
	for _, c := range []struct {
		name    string
		request *http.Request
		handler http.HandlerFunc // nil: no server
		status  int
		kind    string
		again   bool
	}{
		{"no key", keyless, refuse, 400, "invalid", false},
		{"a key that is not passed on", hidden, refuse, 400, "invalid", false},
		{"too long", post(limit + 1), refuse, 413, "invalid", false},
		{"too long, as it turns out", streamed, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); panic(http.ErrAbortHandler) }, 413, "invalid", false},
		{"refused by everyone", post(1), refuse, 503, "not-owner", true},
		{"no owner", post(1), nil, 503, "no-owner", true},
		{"lost", post(1), lose, 502, "indeterminate", false},
		{"no answer", post(1), abort, 502, "indeterminate", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, cluster *leaseholdtest.Cluster) {
				if c.handler != nil {
					stub(cluster, "a", c.handler)
					cluster.Settle()
				}
				startGateway(t, cluster, leasehttp.TransportConfig{Attempts: 3}, leasehttp.ProxyConfig{MaxBody: limit})
				got := do(t, base(cluster.Node("caller")), c.request.WithContext(t.Context()))
				cluster.Advance(time.Second) // servers linger before they close connections
				if got.status != c.status || got.header.Get(leasehttp.HeaderError) != c.kind || kindOf(t, got.body) != c.kind {
					t.Errorf("%v; want %d, %s", got, c.status, c.kind)
				}
				if again := got.header.Get("Retry-After") != ""; again != c.again {
					t.Errorf("Retry-After: %v", again)
				}
				if got.header.Get(leasehttp.HeaderRefused) != "" || strings.Contains(got.body, ":8080") {
					t.Errorf("the response contains servers: %v", got)
				}
			})
		})
	}
}

// The limit of outstanding requests is per server; a caller that disconnects frees a slot.
func TestProxyLimits(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	behind(t, hang, leasehttp.TransportConfig{MaxOutstanding: 1}, leasehttp.ProxyConfig{}, func(t *testing.T, c *leaseholdtest.Cluster, caller *http.Transport) {
		ctx, cancel := context.WithCancel(t.Context())
		first, err := caller.RoundTrip(request(t, "GET", gateway, "").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		got := do(t, caller, request(t, "GET", gateway, ""))
		if got.status != 503 || got.header.Get(leasehttp.HeaderError) != "limit" || got.header.Get("Retry-After") == "" {
			t.Errorf("%v", got)
		}
		cancel()
		_ = first.Body.Close()
		c.Advance(time.Second)
		second, err := caller.RoundTrip(request(t, "GET", gateway, ""))
		if err != nil || second.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", second, err)
		}
		_ = second.Body.Close()
	})
}

// Requests of stalled callers fail and free their slots; waiting for a server is not a stall.
func TestStalledCallersFail(t *testing.T) {
	work := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			long := make([]byte, 1<<20)
			for range 100 {
				if _, err := w.Write(long); err != nil {
					return
				}
			}
		}
		time.Sleep(time.Minute)
		_, _ = io.WriteString(w, "done")
	}
	cfg := leasehttp.TransportConfig{MaxOutstanding: 1}
	behind(t, work, cfg, leasehttp.ProxyConfig{Stall: 10 * time.Second}, func(t *testing.T, c *leaseholdtest.Cluster, caller *http.Transport) {
		from, to := io.Pipe()
		silent := request(t, "POST", gateway, "")
		silent.Body, silent.GetBody, silent.ContentLength = from, nil, -1
		began := time.Now()
		if got := do(t, caller, silent); got.status != http.StatusRequestTimeout || kindOf(t, got.body) != "invalid" || time.Since(began) > 11*time.Second {
			t.Errorf("a caller that sends no body: %v after %v", got, time.Since(began))
		}
		_ = to.Close()

		unread, err := caller.RoundTrip(request(t, "GET", gateway, "")) // its body is not read
		if err != nil {
			t.Fatal(err)
		}
		if got := do(t, caller, request(t, "POST", gateway, "x")); got.status != 503 {
			t.Errorf("while the only slot is in use: %v", got)
		}
		c.Advance(15 * time.Second)
		if got := do(t, caller, request(t, "POST", gateway, "x")); got.body != "done" {
			t.Errorf("a caller that waits for the server: %v", got)
		}
		_ = unread.Body.Close()
		c.Advance(time.Second) // servers linger before they close connections
	})
}

// A WebSocket through the gateway ends when its server loses the key.
func TestWebSocket(t *testing.T) {
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow() //nolint:errcheck // closed already
			for {
				kind, text, err := conn.Read(r.Context())
				if err != nil || conn.Write(r.Context(), kind, []byte(name+": "+string(text))) != nil {
					return
				}
			}
		})
	}
	two(t, echo, func(t *testing.T, c *leaseholdtest.Cluster, has, other *leaseholdtest.Node) {
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		client := &http.Client{Transport: base(c.Node("caller"))}
		dial := func() *websocket.Conn {
			conn, _, err := websocket.Dial(t.Context(), "ws://gateway:8080/chat", &websocket.DialOptions{ //nolint:bodyclose // part of conn
				HTTPClient: client, HTTPHeader: http.Header{"X-User": {alice}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		say := func(conn *websocket.Conn, text, want string) {
			t.Helper()
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := conn.Read(t.Context()); string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		conn := dial()
		for i := range 3 {
			text := fmt.Sprint("hello ", i)
			say(conn, text, has.Name()+": "+text)
			c.Advance(time.Minute) // renewals have no effect
		}
		c.Move(leasehold.All, other.Name())
		c.Advance(5 * time.Second)
		if _, _, err := conn.Read(t.Context()); err == nil {
			t.Error("the connection to a server without the key is open")
		}
		_ = conn.CloseNow()
		c.Settle() // some keys move back
		now, _ := c.Owner(leasehold.KeyOf(alice))
		conn = dial()
		say(conn, "again", now+": again")
		if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
	})
}

// Server-sent events are forwarded immediately.
func TestServerSentEvents(t *testing.T) {
	events := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(w, "data: %d\n\n", i); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
		}
	}
	behind(t, events, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{}, func(t *testing.T, c *leaseholdtest.Cluster, caller *http.Transport) {
		got, err := caller.RoundTrip(request(t, "GET", gateway, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close() //nolint:errcheck // read as far as needed
		lines := bufio.NewScanner(got.Body)
		for i := range 5 {
			began := time.Now()
			if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
				t.Fatalf("event %d: %q, %v", i, lines.Text(), lines.Err())
			}
			if late := time.Since(began); late > time.Second+10*time.Millisecond {
				t.Errorf("event %d took %v", i, late)
			}
		}
		// The stream ends with the lease.
		c.Node("b").Join(owner.Config{})
		c.Advance(time.Second)
		c.Move(leasehold.All, "b")
		began := time.Now()
		for lines.Scan() {
			if time.Since(began) > 10*time.Second {
				t.Fatal("events from a server that does not own the key")
			}
		}
	})
}

// Caller and server stream in both directions within one request.
func TestBidirectionalStream(t *testing.T) {
	upper := func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			panic(err)
		}
		_ = control.Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			_, _ = fmt.Fprintln(w, strings.ToUpper(lines.Text()))
			_ = control.Flush()
		}
	}
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join(t, c.Node("a"), http.HandlerFunc(upper))
		c.Settle()
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{})
		from, to := io.Pipe()
		r := request(t, "POST", "http://presence/", "")
		r.Body, r.GetBody, r.ContentLength = from, nil, -1
		got, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close() //nolint:errcheck // read to its end
		answers := bufio.NewScanner(got.Body)
		for _, word := range []string{"one", "two", "three"} {
			_, _ = fmt.Fprintln(to, word)
			if !answers.Scan() || answers.Text() != strings.ToUpper(word) {
				t.Fatalf("%q, %v", answers.Text(), answers.Err())
			}
		}
		_ = to.Close()
		if answers.Scan() {
			t.Errorf("unexpected data: %q", answers.Text())
		}
	})
}

// Unusual raw requests reach only the owner.
func TestRawRequests(t *testing.T) {
	behind(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "served ", r.Host, r.URL.Path) },
		leasehttp.TransportConfig{}, leasehttp.ProxyConfig{}, func(t *testing.T, c *leaseholdtest.Cluster, _ *http.Transport) {
			for request, want := range map[string]string{
				"GET /x HTTP/1.1\r\nHost: any\r\nX-User: alice\r\n\r\n":                                                              "served any/x",
				"GET http://evil:1/x HTTP/1.1\r\nHost: any\r\nX-User: alice\r\n\r\n":                                                 "served evil:1/x",
				"GET /x HTTP/1.1\r\nHost: any\r\nHost: evil\r\nX-User: alice\r\n\r\n":                                                "400 Bad Request",
				"CONNECT evil:1 HTTP/1.1\r\nHost: evil:1\r\nX-User: alice\r\n\r\n":                                                   "HTTP/1.1 400",
				"GET evil:1 HTTP/1.1\r\nHost: any\r\nX-User: alice\r\n\r\n":                                                          "HTTP/1.1 400",
				"OPTIONS * HTTP/1.1\r\nHost: any\r\nX-User: alice\r\n\r\n":                                                           "HTTP/1.1 200",
				"GET /x HTTP/1.1\r\nHost: any\r\nX-User: alice\rEvil: 1\r\n\r\n":                                                     "400 Bad Request",
				"GET /x HTTP/1.1\r\nHost: any\r\nX-User: a\x00b\r\n\r\n":                                                             "400 Bad Request",
				"POST /x HTTP/1.1\r\nHost: any\r\nX-User: alice\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd":               "400 Bad Request",
				"POST /x HTTP/1.1\r\nHost: any\r\nX-User: alice\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n":                   "501 Not Implemented",
				"POST /x HTTP/1.1\r\nHost: any\r\nX-User: alice\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "served any/x",
			} {
				conn, err := c.Node("raw").Dial(t.Context(), "gateway:8080")
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(conn, request)
				if w, ok := conn.(interface{ CloseWrite() error }); ok && strings.HasPrefix(request, "OPTIONS") {
					_ = w.CloseWrite()
				}
				got := readUntil(conn, want)
				if !strings.Contains(got, want) {
					t.Errorf("%q: %q; want %q", request, got, want)
				}
				_ = conn.Close()
			}
			c.Advance(time.Second) // servers linger before they close connections
		})
}

func readUntil(conn net.Conn, want string) string {
	var got []byte
	for part := make([]byte, 1000); !strings.Contains(string(got), want); {
		n, err := conn.Read(part)
		if got = append(got, part[:n]...); err != nil {
			break
		}
	}
	return string(got)
}
