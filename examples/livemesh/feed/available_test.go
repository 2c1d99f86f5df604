package feed_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/feed"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestMoves: feeds move with their users, when users are moved and when a server is drained.
func TestMoves(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		if err := api.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		leave := serve(t, c.Node("b"), feed.Config{})
		c.Settle()
		c.Move(leasehold.All, "b")
		want(t, api, "carol", "Alice slept")
		if err := api.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Fatal(err)
		}
		if err := leave(t.Context()); err != nil { // a has an old feed, which is replaced
			t.Fatal(err)
		}
		c.Node("b").Kill()
		want(t, api, "carol", "Alice slept and woke up")
	})
}

// TestKill: the feeds of a killed server are lost. Readers receive an empty feed, and posts
// succeed.
func TestKill(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		if err := api.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		serve(t, c.Node("b"), feed.Config{})
		c.Node("a").Kill()
		want(t, api, "carol")
		if err := api.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Error(err)
		}
		want(t, api, "carol", "Alice woke up")
	})
}

// TestWithoutALease: a server whose lease has expired still serves its feeds.
func TestWithoutALease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a := c.Node("a")
		s, err := feed.Join(t.Context(), a.MovingConfig(), feed.Config{})
		if err != nil {
			t.Fatal(err)
		}
		a.Cleanup(func(ctx context.Context) { _ = s.Close(ctx) })
		a.Serve(s.Handler())
		c.Settle()
		api := &feed.Client{Client: jsonhttp.Client{HTTP: c.Node("caller").Client(), URL: "http://" + a.Addr()}}
		if err := api.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		a.Cut()
		c.Advance(time.Minute)
		if _, ok := s.Owner().Check(leasehold.KeyOf("carol")); ok {
			t.Fatal("the server still has a lease")
		}
		if err := api.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Error(err)
		}
		want(t, api, "carol", "Alice slept and woke up")
	})
}

// TestWithoutAManager: feeds are served without a manager, after leases have expired.
func TestWithoutAManager(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, api *feed.Client) {
		if err := api.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		c.KillLeader()
		c.Advance(10 * time.Minute)
		if err := api.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Error(err)
		}
		want(t, api, "carol", "Alice slept and woke up")
	})
}
