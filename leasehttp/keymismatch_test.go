package leasehttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// elsewhere is a name that the server of alice does not own.
func elsewhere(c *leaseholdtest.Cluster) string {
	has, _ := c.Owner(leasehold.KeyOf(alice))
	for _, name := range strings.Fields("bob carol dave erin frank grace heidi ivan judy mallory") {
		if other, ok := c.Owner(leasehold.KeyOf(name)); ok && other != has {
			return name
		}
	}
	panic("one server owns all of them")
}

// mapped runs a server that takes the key from the first segment of the path, without
// middleware.
func mapped(t *testing.T, n *leaseholdtest.Node, asked *atomic.Int32) {
	t.Helper()
	m, err := leasemap.Join(t.Context(), n.MovingConfig(), leasemap.Config[string]{})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
	n.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _, err := m.Get(strings.TrimPrefix(r.URL.Path, "/"))
		leasehttp.WriteError(w, err)
	}))
}

// guardedBy runs a server whose middleware does that.
func guardedBy(t *testing.T, n *leaseholdtest.Node, asked *atomic.Int32) {
	t.Helper()
	o := n.Join(n.OwnerConfig())
	guard := leasehttp.Middleware(o, leasehttp.PathSegment(1))(say("served"))
	n.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		guard.ServeHTTP(w, r)
	}))
}

// A caller with another key source than the server gets an error with both keys without retries,
// directly and through a gateway.
func TestDifferentKeySources(t *testing.T) {
	for name, serve := range map[string]func(*testing.T, *leaseholdtest.Node, *atomic.Int32){"a map": mapped, "middleware": guardedBy} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				var asked atomic.Int32
				serve(t, c.Node("a"), &asked)
				serve(t, c.Node("b"), &asked)
				c.Settle()
				other := elsewhere(c)
				began := time.Now()

				_, err := try(route(t, c.Node("caller"), leasehttp.TransportConfig{}), request(t, "GET", "http://presence/"+other, ""))
				if leasehold.KindOf(err) != leasehold.ErrInvalid || asked.Load() != 1 {
					t.Errorf("%v after %d requests", err, asked.Load())
				}
				wantBoth(t, err.Error(), other)

				startGateway(t, c, leasehttp.TransportConfig{}, leasehttp.ProxyConfig{})
				got := do(t, base(c.Node("caller")), request(t, "GET", gateway+"/"+other, ""))
				if got.status != http.StatusInternalServerError || kindOf(t, got.body) != "invalid" || asked.Load() != 2 {
					t.Errorf("%v after %d requests", got, asked.Load())
				}
				wantBoth(t, got.body, other)
				if len(own(got.header)) != 1 || strings.Contains(got.body, ":8080") {
					t.Errorf("the response contains servers: %v", got)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// wantBoth checks that a text contains both names and keys.
func wantBoth(t *testing.T, text, other string) {
	t.Helper()
	for _, name := range []string{alice, other} {
		if !strings.Contains(text, name) || !strings.Contains(text, leasehold.KeyOf(name).String()) {
			t.Errorf("want %s and its key in %q", name, text)
		}
	}
}

// A rejection without a valid key is retried, and a 400 without a key is the application's own.
func TestRejectionsWithoutKeyAreRetried(t *testing.T) {
	aliceKey := leasehold.KeyOf(alice).String()
	for _, c := range []struct {
		name, refused, key string
		status             int
		want               leasehold.Kind
		asked              int32
	}{
		{"no key", leasehttp.RefusedNotOwner, "", 421, leasehold.ErrNotOwner, 3},
		{"no hexadecimal", leasehttp.RefusedNotOwner, "bob", 421, leasehold.ErrNotOwner, 3},
		{"the same key", leasehttp.RefusedNotOwner, aliceKey, 421, leasehold.ErrNotOwner, 3},
		{"another key", leasehttp.RefusedNotOwner, leasehold.KeyOf("bob").String(), 421, leasehold.ErrInvalid, 1},
		{"detected by the server", leasehttp.RefusedOtherKey, leasehold.KeyOf("bob").String(), 400, leasehold.ErrInvalid, 1},
		{"an application's response", leasehttp.RefusedOtherKey, "", 400, leasehold.Other, 1},
		{"another status", leasehttp.RefusedNotOwner, leasehold.KeyOf("bob").String(), 404, leasehold.Other, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, cluster *leaseholdtest.Cluster) {
				var asked atomic.Int32
				stub(cluster, "a", func(w http.ResponseWriter, _ *http.Request) {
					asked.Add(1)
					w.Header().Set(leasehttp.HeaderRefused, c.refused)
					w.Header().Set(leasehttp.HeaderKey, c.key)
					w.Header().Set(leasehttp.HeaderName, "%zz") // cannot be unescaped
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, "no")
				})
				cluster.Settle()
				_, err := try(route(t, cluster.Node("caller"), leasehttp.TransportConfig{Attempts: 3}), request(t, "POST", "http://presence/", "x"))
				if leasehold.KindOf(err) != c.want || (c.want == leasehold.Other) != (err == nil) || asked.Load() != c.asked {
					t.Errorf("%v after %d requests, want %v after %d", err, asked.Load(), c.want, c.asked)
				}
			})
		})
	}
}
