package leasehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// If one attempt may have been executed, the error is indeterminate, whatever the result of the
// following attempts.
func TestIndeterminateAttemptIsNotHidden(t *testing.T) {
	for name, how := range map[string]http.HandlerFunc{"not answered": abort, "lost": lose} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				stub(c, "a", once(how, refuse))
				c.Settle()
				startGateway(t, c, leasehttp.TransportConfig{Attempts: 5}, leasehttp.ProxyConfig{})
				maybeDone(t, do(t, base(c.Node("caller")), request(t, "PUT", gateway, "x")))
				c.Advance(time.Second) // servers linger before they close connections
			})
		})
	}
}

// A conditional change is not retried without a response: if it was executed, the retry fails its
// condition, and the caller would conclude that it was not.
func TestConditionalRequestsAreNotRetried(t *testing.T) {
	conflict := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPreconditionFailed) }
	for _, header := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		for _, method := range []string{"PUT", "DELETE"} {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				stub(c, "a", once(lose, conflict))
				c.Settle()
				transport := route(t, c.Node("caller"), leasehttp.TransportConfig{})
				r := request(t, method, "http://presence/", "x")
				r.Header.Set(header, "*")
				if got, err := try(transport, r); leasehold.KindOf(err) != leasehold.ErrIndeterminate {
					t.Errorf("%s with %s: %v, %v", method, header, got, err)
				}
			})
		}
	}
}

// once handles the first request with one handler, and all others with another.
func once(first, then http.HandlerFunc) http.HandlerFunc {
	var asked atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if asked.CompareAndSwap(false, true) {
			first(w, r)
			return
		}
		then(w, r)
	}
}

// The lookup is closed after an attempt that may have been executed.
func TestLookupClosedAfterIndeterminateAttempt(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		caller := c.Node("caller")
		l := caller.Lookup()
		stub(c, "a", once(lose, func(w http.ResponseWriter, r *http.Request) {
			_ = l.Close(context.Background())
			refuse(w, r)
		}))
		c.Settle()
		transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: user, Base: base(caller)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = try(transport, request(t, "PUT", "http://presence/", "x"))
		if leasehold.KindOf(err) != leasehold.ErrIndeterminate || errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

func maybeDone(t *testing.T, got answer) {
	t.Helper()
	if got.status != http.StatusBadGateway || got.header.Get("Retry-After") != "" || kindOf(t, got.body) != "indeterminate" {
		t.Errorf("%v; want 502, indeterminate", got)
	}
}

// The only server crashes during a request. The error is indeterminate, not the absence of an
// owner.
func TestServerCrashesDuringRequest(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		begun := make(chan struct{})
		stub(c, "a", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(begun)
			<-r.Context().Done()
		})
		c.Settle()
		startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
		caller := base(c.Node("caller"))
		got := make(chan answer, 1)
		go func() {
			a, _ := try(caller, request(t, "PUT", gateway, "x"))
			got <- a
		}()
		<-begun
		c.Node("a").Kill()
		maybeDone(t, <-got)
	})
}

// An attempt that was cancelled because its key moved may have been executed.
func TestAttemptCancelledByMoveIsIndeterminate(t *testing.T) {
	two(t, func(string) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
	}, func(t *testing.T, c *leaseholdtest.Cluster, has, _ *leaseholdtest.Node) {
		transport := route(t, c.Node("caller"), leasehttp.TransportConfig{Attempts: 1})
		ended := make(chan error, 1)
		go func() {
			_, err := try(transport, request(t, "PUT", "http://presence/", "x"))
			ended <- err
		}()
		c.Advance(100 * time.Millisecond)
		has.Pause()
		if err := <-ended; leasehold.KindOf(err) != leasehold.ErrIndeterminate {
			t.Errorf("%v", err)
		}
		has.Resume()
	})
}

// The retry of an attempt that may have been executed exceeds the limit of outstanding requests.
func TestLimitAfterIndeterminateAttempt(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var transport *leasehttp.Transport
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stub(c, "a", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-r.Context().Done()
				return
			}
			lose(w, r)
			// The response takes a millisecond, and the backoff at least another one.
			time.AfterFunc(1500*time.Microsecond, func() {
				_, _ = try(transport, request(t, "GET", "http://presence/", "").WithContext(ctx))
			})
		})
		c.Settle()
		transport = route(t, c.Node("caller"), leasehttp.TransportConfig{MaxOutstanding: 1})
		_, err := try(transport, request(t, "PUT", "http://presence/", "x"))
		if leasehold.KindOf(err) != leasehold.ErrIndeterminate || errors.Is(err, leasehold.ErrLimit) {
			t.Errorf("%v", err)
		}
	})
}
