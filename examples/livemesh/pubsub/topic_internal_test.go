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
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A topic takes so many subscribers, and can be moved with all of them; one more is refused,
// and those that are there may say again that they subscribe.
func TestMaxSubscribers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join := func(n *leaseholdtest.Node) *Service {
			s, err := Join(t.Context(), n.MovingConfig(), nil)
			meshtest.Serve(t, n, s, err)
			c.Settle()
			return s
		}
		s := join(c.Node("a"))
		asks := &Client{Client: meshtest.Client(t, c, c.Node("caller"))}
		name := func(i int) string { return fmt.Sprintf("%0*d", jsonhttp.MaxName, i) }
		full := topic{make(map[string]time.Duration), time.Now()}
		for i := range MaxSubscribers {
			full.Subscribers[name(i)] = time.Hour
		}
		if _, err := s.topics.Set(t.Context(), "news", full, leasemap.WithTTL(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := asks.Subscribe(t.Context(), "news", name(MaxSubscribers), time.Hour); !errors.Is(err, leasehold.ErrLimit) {
			t.Errorf("one too many: %v", err)
		}
		if err := asks.Subscribe(t.Context(), "news", name(0), time.Hour); err != nil {
			t.Errorf("one that is there: %v", err)
		}
		join(c.Node("b"))
		c.Move(leasehold.All, "b")
		if err := asks.Refresh(t.Context(), "news", name(7), time.Hour); err != nil {
			t.Errorf("after a move: %v", err)
		}
	})
}
