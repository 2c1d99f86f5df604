package main

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

func TestCounters(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		servers := make(map[string]*leasemap.Map[int])
		for _, name := range []string{"a", "b", "c"} {
			n := c.Node(name)
			counters, err := leasemap.Join(t.Context(), n.MovingConfig(), leasemap.Config[int]{})
			if err != nil {
				t.Fatal(err)
			}
			n.Cleanup(func(ctx context.Context) { _ = counters.Close(ctx) })
			n.Serve(handler(counters))
			servers[name] = counters
		}
		c.Settle() // until every key has an owner, and no key moves
		alice, caller := leasehold.KeyOf("alice"), routed(t, c.Node("caller"))
		wantCount(t, caller, "1\n")
		wantCount(t, caller, "2\n")

		first, _ := c.Owner(alice)
		if err := servers[first].Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantCount(t, caller, "3\n") // the counter has moved

		second, _ := c.Owner(alice)
		c.Node(second).Kill()
		c.Settle()                  // until its leases have expired
		wantCount(t, caller, "1\n") // the counter is lost
	})
}

// routed returns an HTTP client that sends each request to the owner of the second path segment.
func routed(t *testing.T, n *leaseholdtest.Node) *http.Client {
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: n.Lookup(), Key: leasehttp.PathSegment(2), Base: n.Client().Transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// wantCount increments alice's counter.
func wantCount(t *testing.T, client *http.Client, want string) {
	t.Helper()
	response, err := client.Post("http://counters/counters/alice", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
		t.Errorf("count %q, error %v; want %q", body, err, want)
	}
}
