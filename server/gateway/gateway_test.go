package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// TestGatewayHealth: a gateway without managers is ready, and its health response reports the age
// of the lease table. A gateway that is stopping, or has no table yet, is not ready.
func TestGatewayHealth(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		c.Node("a").Join(owner.Config{})
		c.Settle()
		h := &Health{}
		wants := func(path string, status int, text string) {
			t.Helper()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != status || !strings.HasPrefix(w.Body.String(), text) {
				t.Errorf("%s: %d %s; want %d %s", path, w.Code, w.Body, status, text)
			}
		}
		wants("/healthz", 200, "ok")
		wants("/readyz", 503, "waiting for the lease table")
		n := c.Node("gateway")
		h.follow(n.Lookup())
		wants("/readyz", 200, "ok\n")
		n.Cut()
		c.Advance(5 * time.Minute)
		wants("/readyz", 200, "ok, but no manager has confirmed the lease table for 5m")
		wants("/healthz", 200, "ok")
		n.Heal()
		c.Advance(time.Minute)
		wants("/readyz", 200, "ok\n")
		h.stop()
		wants("/readyz", 503, "stopping")
		wants("/", 404, "want /healthz, /readyz or /metrics")
	})
}

// TestFrontStops: at the stop, requests in flight continue until the drain timeout, and new
// requests are rejected.
func TestFrontStops(t *testing.T) {
	for name, test := range map[string]struct{ takes, drain, want time.Duration }{
		"in time":  {5 * time.Second, 10 * time.Second, 5 * time.Second},
		"too late": {time.Minute, 10 * time.Second, 10 * time.Second},
		"at once":  {time.Minute, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				f := startFront(c.Node("gateway").Listen(8080), nil, slog.New(slog.DiscardHandler))
				get := func() (int, string) {
					answer, err := c.Node("caller").Client().Get("http://gateway:8080/")
					if err != nil {
						return 0, err.Error()
					}
					defer answer.Body.Close() //nolint:errcheck // read-only
					text, _ := io.ReadAll(answer.Body)
					return answer.StatusCode, answer.Header.Get(leasehttp.HeaderError) + string(text)
				}
				if status, text := get(); status != 503 || !strings.Contains(text, "no manager has responded") {
					t.Errorf("request before the first table: %d %s", status, text)
				}
				begun, ended, released := make(chan struct{}), make(chan bool, 1), false
				f.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, _, err := http.NewResponseController(w).Hijack() // the hardest case: the server does not track a hijacked connection
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close() //nolint:errcheck // cleanup only
					close(begun)
					select {
					case <-time.After(test.takes):
						ended <- true
					case <-r.Context().Done():
						ended <- false
					}
				}), func() { released = true })
				done := make(chan struct{})
				go func() { defer close(done); get() }()
				<-begun
				began := time.Now()
				f.stop(test.drain)
				if took := time.Since(began); took != test.want {
					t.Errorf("it took %v, want %v", took, test.want)
				}
				if finished := <-ended; finished != (test.takes <= test.drain) || !released {
					t.Errorf("finished: %v, released: %v", finished, released)
				}
				if status, text := get(); status != 0 {
					t.Errorf("a request after the end: %d %s", status, text)
				}
				<-done
				f.stop(time.Hour) // a second stop has no effect
			})
		})
	}
}

// TestGatewaySettings: valid settings are parsed.
func TestGatewaySettings(t *testing.T) {
	g := &Settings{}
	g.AddFlags(&cobra.Command{})
	if err := g.Flags.Parse(strings.Fields("-n presence --key path:2,cookie:sid --key header:X-User --max-body 2MiB --replay 0")); err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	if g.transport.Key.String() != "path:2,cookie:sid,header:X-User" || g.proxy.MaxBody != 2<<20 || g.transport.Replay >= 0 {
		t.Errorf("%+v", g)
	}
	const want = "presence, from 127.0.0.1:7400\nkey        path:2, else cookie:sid, else header:X-User\nhealth     http://127.0.0.1:8081/readyz\n"
	if got := g.greeting("127.0.0.1:8080", "127.0.0.1:8081"); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
