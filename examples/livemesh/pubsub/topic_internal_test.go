package pubsub

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestMaxSubscribers: a topic with the maximum number of subscribers refuses another one, accepts
// refreshes, and can be transferred.
func TestMaxSubscribers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join := func(n *leaseholdtest.Node) *Service {
			s, err := Join(t.Context(), n.MovingConfig(), nil)
			meshtest.Serve(t, n, s, err)
			c.Settle()
			return s
		}
		s := join(c.Node("a"))
		api := &Client{Client: meshtest.Client(t, c, c.Node("caller"))}
		name := func(i int) string { return fmt.Sprintf("%0*d", jsonhttp.MaxName, i) }
		full := make(topic)
		for i := range MaxSubscribers {
			full[name(i)] = time.Now().Add(time.Hour)
		}
		if _, err := s.topics.Set(t.Context(), "news", full); err != nil {
			t.Fatal(err)
		}
		if err := api.Subscribe(t.Context(), "news", name(MaxSubscribers)); !errors.Is(err, leasehold.ErrLimit) {
			t.Errorf("a subscriber above the maximum: %v", err)
		}
		if err := api.Subscribe(t.Context(), "news", name(0)); err != nil {
			t.Errorf("an existing subscriber: %v", err)
		}
		join(c.Node("b"))
		c.Move(leasehold.All, "b")
		if err := api.Refresh(t.Context(), "news", name(7)); err != nil {
			t.Errorf("after a move: %v", err)
		}
	})
}
