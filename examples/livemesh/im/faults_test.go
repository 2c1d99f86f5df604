package im_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/meshtest"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestAllAreThereAgain: soon after any fault of servers all users are present again as their
// frontend has published them, without polling.
func TestAllAreThereAgain(t *testing.T) {
	republished := 0
	for seed := range uint64(meshtest.Runs(20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
				republished += runWithFaults(t, c, seed)
			})
		})
	}
	t.Logf("%d users were published again", republished)
	if republished == 0 {
		t.Error("no user was lost: the test is void")
	}
}

func runWithFaults(t *testing.T, c *leaseholdtest.Cluster, seed uint64) (republished int) {
	e := &leaseholdtest.Nemesis{
		Random: rand.New(rand.NewPCG(seed, 99)),
		Start:  func(n *leaseholdtest.Node) func(context.Context) error { return serve(t, n) },
	}
	e.Begin(c, "a", "b", "c")
	p, _ := publish(t, c, "frontend", 24*time.Hour)
	users := publishMany(t, p, 30)
	changing, stop := context.WithCancel(t.Context())
	defer stop()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		change(changing, t, p, users, rand.New(rand.NewPCG(seed, 1)))
	}()
	for range 3 {
		c.Advance(time.Second)
		t.Log(e.Hurt())
	}
	c.Settle()
	stop()
	<-changed
	c.Advance(5 * time.Second)
	if diff := cmp.Diff(users, see(t, client(t, c, c.Node("reader")), users)); diff != "" {
		t.Errorf("%+v:\n%s", p.Stats(), diff)
	}
	return p.Stats().Republished
}

// change changes users at random times, and records their expected presence.
func change(ctx context.Context, t *testing.T, p *im.Publisher, users map[string]im.Presence, random *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.IntN(400)) * time.Millisecond):
		}
		name := fmt.Sprint("user-", random.IntN(len(users)))
		next := users[name]
		next.Status = fmt.Sprint("busy ", i)
		users[name] = next
		// The publisher retries failed calls.
		if err := p.Publish(ctx, name, next); errors.Is(err, leasehold.ErrInvalid) || errors.Is(err, leasehold.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRunsLate: losses between NewPublisher and Run are handled.
func TestRunsLate(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		n := c.Node("frontend")
		api := client(t, c, n)
		p := im.NewPublisher(im.PublisherConfig{Client: api, Lookup: meshtest.Lookup(t, c, n), Refresh: time.Hour})
		users := publishMany(t, p, 5)
		c.Node("a").Kill()
		serve(t, c.Node("a"))
		c.Settle()
		if got := see(t, api, users); len(got) != 0 {
			t.Errorf("these were published again before Run: %v", got)
		}
		run(t, n, p)
		c.Advance(time.Second)
		if diff := cmp.Diff(users, see(t, api, users)); diff != "" {
			t.Error(diff)
		}
	})
}
