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

// Feeds go with their users: when a server is restarted, and when the users are moved.
func TestMoves(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *feed.Client) {
		if _, err := asks.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		leave := serve(t, c.Node("b"), feed.Config{})
		c.Settle()
		c.Move(leasehold.All, "b")
		want(t, asks, "carol", "Alice slept")
		if _, err := asks.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Fatal(err)
		}
		if err := leave(t.Context()); err != nil { // a has an old feed, which gives way
			t.Fatal(err)
		}
		c.Node("b").Kill()
		want(t, asks, "carol", "Alice slept and woke up")
	})
}

// When a server dies its feeds are gone. Readers see one without entries, and it can be
// posted to.
func TestKill(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *feed.Client) {
		if _, err := asks.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		serve(t, c.Node("b"), feed.Config{})
		c.Node("a").Kill()
		want(t, asks, "carol")
		if _, err := asks.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Error(err)
		}
		want(t, asks, "carol", "Alice woke up")
	})
}

// A server whose lease has run out serves what it has, where another service refuses.
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
		asks := &feed.Client{Client: jsonhttp.Client{HTTP: c.Node("caller").Client(), URL: "http://" + a.Addr()}}
		if _, err := asks.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		a.Cut()
		c.Advance(time.Minute)
		if _, ok := s.Owner().Check(leasehold.KeyOf("carol")); ok {
			t.Fatal("it still has a lease")
		}
		if _, err := asks.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Error(err)
		}
		want(t, asks, "carol", "Alice slept and woke up")
	})
}

// While no manager is there, no other service answers for longer than leases last.
func TestWithoutAManager(t *testing.T) {
	alone(t, feed.Config{}, func(t *testing.T, c *leaseholdtest.Cluster, asks *feed.Client) {
		if _, err := asks.Add(t.Context(), "carol", rss("Alice slept")); err != nil {
			t.Fatal(err)
		}
		c.KillLeader()
		c.Advance(10 * time.Minute)
		if _, err := asks.Add(t.Context(), "carol", rss("Alice woke up")); err != nil {
			t.Error(err)
		}
		want(t, asks, "carol", "Alice slept and woke up")
	})
}
