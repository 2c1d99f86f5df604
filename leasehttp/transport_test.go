package leasehttp_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestRoutes: each request reaches the owner of its key, and is left as it was.
func TestRoutes(t *testing.T) {
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
