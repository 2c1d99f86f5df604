package leasehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// Each request reaches the owner of its key and is not modified.
func TestRequestsReachTheOwner(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, _, _ *leaseholdtest.Node) {
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{})
		seen := map[string]bool{}
		for _, name := range []string{"alice", "bob", "carol", "dave", "eve", "frank", "grace", "heidi"} {
			r := request(t, "GET", "http://presence/x", "")
			r.Header.Set("X-User", name)
			want, _ := c.Owner(leasehold.KeyOf(name))
			if got := do(t, transport, r); got.body != want {
				t.Errorf("%s: at %q, want %q", name, got.body, want)
			}
			if r.URL.Host != "presence" || r.Host != "presence" || len(r.Header) != 1 {
				t.Errorf("the request was changed: %v %v", r.URL, r.Header)
			}
			seen[want] = true
		}
		if len(seen) != 2 {
			t.Errorf("all names are with one server")
		}
	})
}

// A server gets the caller's host and the derived key, not the caller's Leasehold-Key.
func TestHeadersOfForwardedRequests(t *testing.T) {
	echo := func(string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintln(w, r.Host, r.URL, r.Header[leasehttp.HeaderKey], r.Header["Leasehold-Other"])
		})
	}
	two(t, echo, func(t *testing.T, c *leaseholdtest.Cluster, _, _ *leaseholdtest.Node) {
		r := request(t, "GET", "http://presence/x%2Fy?a=b", "")
		r.Header["Leasehold-Key"] = []string{"0000000000000000"}
		r.Header["Leasehold-Other"] = []string{"x"}
		want := "presence /x%2Fy?a=b [" + leasehold.KeyOf(alice).String() + "] []\n"
		if got := do(t, route(t, c.Node("caller"), leasehttp.TransportConfig{}), r); got.body != want {
			t.Errorf("%q, want %q", got.body, want)
		}
	})
}

// stub joins a node as a server with this handler, without middleware.
func stub(c *leaseholdtest.Cluster, name string, handler http.HandlerFunc) {
	n := c.Node(name)
	n.Join(owner.Config{})
	n.Serve(handler)
}

// refuse rejects a request that was not executed.
func refuse(w http.ResponseWriter, _ *http.Request) { leasehttp.WriteError(w, leasehold.ErrNotOwner) }

// lose responds like a server whose lease ended during the request.
func lose(w http.ResponseWriter, _ *http.Request) {
	leasehttp.WriteError(w, leasehold.ErrIndeterminate)
}

// abort closes the connection without a response.
func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// fussy responds to the first requests with another handler. It counts the requests and records
// their bodies.
type fussy struct {
	times   int32
	how     http.HandlerFunc
	asked   atomic.Int32
	content atomic.Pointer[string]
}

func (f *fussy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.asked.Add(1) <= f.times {
		f.how(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	text := string(body)
	f.content.Store(&text)
	_, _ = io.WriteString(w, "done")
}

// unknown hides the length of a body, and has no GetBody.
type unknown struct{ io.Reader }

func (unknown) Close() error { return nil }

// Which requests are retried, and how often.
func TestRetries(t *testing.T) {
	short, long := "short", strings.Repeat("x", 3*leasehttp.DefaultReplay)
	own421 := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) }
	for _, c := range []struct {
		name   string
		method string
		body   string
		stream bool // read once, of unknown length
		how    http.HandlerFunc
		asked  int32 // the requests that the server gets; it rejects the first three
		status int
		kind   leasehold.Kind // of the error, if any
	}{
		{"a get that is refused", "GET", "", false, refuse, 4, 200, 0},
		{"a post that is refused", "POST", short, false, refuse, 4, 200, 0},
		{"a stream that is refused", "POST", short, true, refuse, 4, 200, 0},
		{"a long post that is refused", "POST", long, false, refuse, 4, 200, 0},
		{"an application's own 421", "GET", "", false, own421, 1, 421, 0},
		{"a get whose lease ended", "GET", "", false, lose, 4, 200, 0},
		{"a put whose lease ended", "PUT", short, true, lose, 4, 200, 0},
		{"a post whose lease ended", "POST", short, false, lose, 1, 0, leasehold.ErrIndeterminate},
		{"a get that is not answered", "GET", "", false, abort, 4, 200, 0},
		{"a put that is not answered", "PUT", short, true, abort, 4, 200, 0},
		{"a post that is not answered", "POST", short, false, abort, 1, 0, leasehold.ErrIndeterminate},
		{"a patch that is not answered", "PATCH", short, false, abort, 1, 0, leasehold.ErrIndeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, cluster *leaseholdtest.Cluster) {
				f := &fussy{times: 3, how: c.how}
				stub(cluster, "a", f.ServeHTTP)
				cluster.Settle()
				r := request(t, c.method, "http://presence/", c.body)
				if c.stream {
					r.Body, r.GetBody, r.ContentLength = unknown{strings.NewReader(c.body)}, nil, -1
				}
				// With a limit of 1, each attempt must have ended before the next.
				got, err := try(route(t, cluster.Node("caller"), leasehttp.TransportConfig{MaxOutstanding: 1}), r)
				if leasehold.KindOf(err) != c.kind || got.status != c.status {
					t.Errorf("%d, %v; want %d, %v", got.status, err, c.status, c.kind)
				}
				if n := f.asked.Load(); n != c.asked {
					t.Errorf("the server got %d requests, want %d", n, c.asked)
				}
				if content := f.content.Load(); c.status == 200 && (content == nil || *content != c.body) {
					t.Error("the received body differs from the sent one")
				}
			})
		})
	}
}

// A body that is too long to be kept is sent after 100 Continue, and not sent again.
func TestLongBodies(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name   string
		length int64
		how    http.HandlerFunc
		asked  int32
		kind   leasehold.Kind
	}{
		{"refused before it is sent", 100_000, refuse, 4, 0},
		{"refused after it was sent", -1, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			refuse(w, r)
		}, 1, leasehold.ErrNotOwner},
		{"not answered", -1, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}, 1, leasehold.ErrIndeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, cluster *leaseholdtest.Cluster) {
				f := &fussy{times: 3, how: c.how}
				stub(cluster, "a", f.ServeHTTP)
				cluster.Settle()
				r := request(t, "PUT", "http://presence/", "")
				r.Body, r.GetBody, r.ContentLength = unknown{strings.NewReader(long)}, nil, c.length
				_, err := try(route(t, cluster.Node("caller"), leasehttp.TransportConfig{}), r)
				if leasehold.KindOf(err) != c.kind || f.asked.Load() != c.asked {
					t.Errorf("%v after %d requests; want %v after %d", err, f.asked.Load(), c.kind, c.asked)
				}
				if content := f.content.Load(); c.kind == 0 && (content == nil || *content != long) {
					t.Error("the received body differs from the sent one")
				}
			})
		})
	}
}

// The number and the duration of attempts are limited.
func TestAttemptsAreLimited(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		f := &fussy{times: 1 << 30, how: refuse}
		stub(c, "a", f.ServeHTTP)
		c.Settle()
		began := time.Now()
		_, err := try(route(t, c.Node("caller"), leasehttp.TransportConfig{}), request(t, "POST", "http://presence/", "x"))
		if leasehold.KindOf(err) != leasehold.ErrNotOwner || f.asked.Load() != 40 || time.Since(began) > time.Minute {
			t.Errorf("%v after %d attempts and %v", err, f.asked.Load(), time.Since(began))
		}
		f.asked.Store(0)
		_, err = try(route(t, c.Node("caller"), leasehttp.TransportConfig{Attempts: 3}), request(t, "POST", "http://presence/", "x"))
		if leasehold.KindOf(err) != leasehold.ErrNotOwner || f.asked.Load() != 3 {
			t.Errorf("%v after %d attempts", err, f.asked.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = try(route(t, c.Node("caller"), leasehttp.TransportConfig{}), request(t, "GET", "http://presence/", "").WithContext(ctx))
		if !errors.Is(err, context.DeadlineExceeded) { // between two attempts or during one
			t.Errorf("with a deadline: %v", err)
		}
	})
}

func TestNoOwner(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{})
		_, err := try(transport, request(t, "POST", "http://presence/", "x"))
		if leasehold.KindOf(err) != leasehold.ErrNoOwner {
			t.Errorf("%v", err)
		}
		// A server that joins while a request waits gets it.
		got := make(chan answer, 1)
		go func() {
			a, _ := try(transport, request(t, "POST", "http://presence/", "x"))
			got <- a
		}()
		c.Advance(time.Second)
		join(t, c.Node("a"), say("a"))
		if a := <-got; a.body != "a" {
			t.Errorf("%v", a)
		}
	})
}

// Requests beyond MaxOutstanding fail immediately; closing a response frees a slot.
func TestOutstandingRequests(t *testing.T) {
	stream := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		stub(c, "a", stream)
		c.Settle()
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{MaxOutstanding: 2})
		var open []*http.Response
		for range 2 {
			a, err := transport.RoundTrip(request(t, "GET", "http://presence/", "")) //nolint:bodyclose // below
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, a) //nolint:bodyclose // below
		}
		began := time.Now()
		if _, err := try(transport, request(t, "GET", "http://presence/", "")); leasehold.KindOf(err) != leasehold.ErrLimit || time.Since(began) > 0 {
			t.Errorf("the third request: %v after %v", err, time.Since(began))
		}
		_ = open[0].Body.Close()
		_ = open[0].Body.Close() // the second Close has no effect
		if a, err := transport.RoundTrip(request(t, "GET", "http://presence/", "")); err != nil {
			t.Errorf("after a response was closed: %v", err)
		} else if _, err := try(transport, request(t, "GET", "http://presence/", "")); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("the third request: %v", err)
		} else {
			_ = a.Body.Close()
		}
		_ = open[1].Body.Close()
	})
}

func TestInvalidRequests(t *testing.T) {
	two(t, nil, func(t *testing.T, c *leaseholdtest.Cluster, _, _ *leaseholdtest.Node) {
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{})
		keyless := request(t, "POST", "http://presence/", "x")
		keyless.Header.Del("X-User")
		opaque := request(t, "GET", "http://presence/", "")
		opaque.URL.Opaque = "//elsewhere/"
		for name, r := range map[string]*http.Request{
			"no key": keyless, "opaque": opaque, "connect": request(t, "CONNECT", "http://presence/", ""),
		} {
			closed := &closes{Reader: strings.NewReader("x")}
			r.Body, r.GetBody = closed, nil
			if _, err := try(transport, r); leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Errorf("%s: %v", name, err)
			}
			if closed.times != 1 {
				t.Errorf("%s: the body was closed %d times", name, closed.times)
			}
		}
	})
}

type closes struct {
	io.Reader
	times int
}

func (c *closes) Close() error { c.times++; return nil }

func TestTransportConfig(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		l := c.Node("caller").Lookup()
		for want, cfg := range map[string]leasehttp.TransportConfig{
			"Lookup":         {Key: user},
			"Key":            {Lookup: l},
			"MaxOutstanding": {Lookup: l, Key: user, MaxOutstanding: -1},
			"Attempts":       {Lookup: l, Key: user, Attempts: -1},
			"Replay":         {Lookup: l, Key: user, Replay: 1 << 30},
		} {
			if _, err := leasehttp.NewTransport(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: user, Replay: -1})
		if err != nil {
			t.Fatal(err)
		}
		for want, cfg := range map[string]leasehttp.ProxyConfig{
			"Transport": {},
			"Scheme":    {Transport: transport, Scheme: "ftp"},
			"MaxBody":   {Transport: transport, MaxBody: -1},
		} {
			if _, err := leasehttp.NewProxy(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}
