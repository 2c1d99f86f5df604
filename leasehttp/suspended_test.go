package leasehttp_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// Requests of any method wait for a suspended lease, and are executed once when it is resumed.
// Without retries, the response has Retry-After.
func TestRequestsWaitForSuspendedLeases(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var served atomic.Int32
		a := c.Node("a")
		join(t, a, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			_, _ = io.WriteString(w, "done")
		}))
		c.Settle()
		caller := route(t, c.Node("caller"), leasehttp.TransportConfig{})
		startGateway(t, c, leasehttp.TransportConfig{Attempts: 2}, leasehttp.ProxyConfig{})
		c.KillManager("m1")
		c.Advance(20 * time.Second)

		bare := do(t, base(c.Node("bare")), request(t, "POST", "http://a:8080/", "x"))
		if h := bare.header; bare.status != 503 || h.Get("Leasehold-Refused") != "suspended" || h.Get("Retry-After") != "1" ||
			h.Get("Leasehold-Key") != leasehold.KeyOf(alice).String() || kindOf(t, bare.body) != "suspended" {
			t.Errorf("the server responds %+v", bare)
		}
		through := do(t, base(c.Node("bare")), request(t, "POST", gateway+"/", "x"))
		if h := through.header; through.status != 503 || h.Get("Leasehold-Error") != "suspended" || h.Get("Retry-After") != "1" || h.Get("Leasehold-Refused") != "" {
			t.Errorf("the gateway responds %+v", through)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		answered := make(chan answer, 1)
		go func() { answered <- do(t, caller, request(t, "POST", "http://service/", "x").WithContext(ctx)) }()
		c.Advance(10 * time.Minute)
		if n := served.Load(); n > 0 || len(answered) > 0 {
			t.Fatalf("%d requests were served without a lease", n)
		}
		begun := time.Now()
		c.StartManager("m1")
		if got := <-answered; got.status != 200 || got.body != "done" || served.Load() != 1 {
			t.Errorf("%+v, executed %d times", got, served.Load())
		}
		t.Logf("served %v after the manager's start", time.Since(begun))
	})
}

// A request continues during a suspension, and ends if the lease ends.
func TestContextOutlivesASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holder{}
		got := guarded(h, forAlice(), func(w http.ResponseWriter, r *http.Request) {
			h.suspended.Store(true)
			time.Sleep(time.Hour)
			if err := r.Context().Err(); err != nil {
				t.Errorf("suspended: %v", context.Cause(r.Context()))
			}
			h.suspended.Store(false)
			time.Sleep(time.Hour)
			if err := r.Context().Err(); err != nil {
				t.Errorf("resumed: %v", context.Cause(r.Context()))
			}
			_, _ = io.WriteString(w, "done")
		})
		if got.Code != 200 || got.Body.String() != "done" {
			t.Errorf("%d %s", got.Code, got.Body)
		}
		got = guarded(h, forAlice(), func(_ http.ResponseWriter, r *http.Request) {
			h.suspended.Store(true)
			time.Sleep(time.Hour)
			h.lost.Store(true)
			<-r.Context().Done()
		})
		if got.Code != 503 || got.Header().Get("Leasehold-Refused") != "lost" {
			t.Errorf("%d %v", got.Code, got.Header())
		}
	})
}

// A response that is written while the lease is suspended is not sent.
func TestResponseDuringSuspensionIsReplaced(t *testing.T) {
	h := &holder{}
	got := guarded(h, forAlice(), func(w http.ResponseWriter, _ *http.Request) {
		h.suspended.Store(true)
		_, _ = io.WriteString(w, "secret")
	})
	if got.Code != 503 || got.Header().Get("Leasehold-Refused") != "lost" {
		t.Errorf("%d %v, want lost", got.Code, got.Header())
	}
}
