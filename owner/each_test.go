package owner_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// consumers are the calls of Each on all servers.
type consumers struct {
	t *testing.T
	// lingers is the time for which a call continues after the end of its context.
	lingers time.Duration

	mu      sync.Mutex
	running map[leasehold.Lease]string // server
	late    int                        // calls that began while a call of another server ran
}

// join joins a server that runs Each on a node, and returns its owner.
func (c *consumers) join(n *leaseholdtest.Node, mover *owner.Mover) *owner.Owner {
	o := n.Join(owner.Config{Mover: mover})
	c.start(n, o)
	return o
}

func (c *consumers) start(n *leaseholdtest.Node, o *owner.Owner) {
	ended := make(chan error, 1)
	go func() {
		ended <- owner.Each(context.Background(), o, func(ctx context.Context, l leasehold.Lease) error { return c.consume(ctx, n.Name(), l) })
	}()
	n.Cleanup(func(ctx context.Context) {
		_ = o.Close(ctx)
		if err := <-ended; err != nil {
			c.t.Errorf("Each returns %v after Close", err)
		}
	})
}

// moving returns a Mover without state.
func moving(n *leaseholdtest.Node) *owner.Mover {
	m := n.Mover()
	m.Export = func(_ context.Context, out *owner.Export) error { return out.Stop() }
	m.Import = func(_ context.Context, in *owner.Import) (func(leasehold.Lease), error) {
		for _, err := range in.Records() {
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return m
}

func (c *consumers) consume(ctx context.Context, server string, l leasehold.Lease) error {
	c.mu.Lock()
	for other, by := range c.running {
		if !other.Range.Overlaps(l.Range) {
			continue
		}
		if by == server {
			c.t.Errorf("two calls of %s run: %v and %v", server, other, l)
		}
		c.late++
	}
	c.running[l] = server
	c.mu.Unlock()
	<-ctx.Done()
	time.Sleep(c.lingers)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, l)
	return ctx.Err()
}

// want checks that the calls are on exactly the leases of the owners.
func (c *consumers) want(when string, owners ...*owner.Owner) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, o := range owners {
		for _, l := range o.Leases() {
			if n++; c.running[l] != string(o.Name()) {
				c.t.Errorf("%s: %v of %s has no call, but: %v", when, l, o.Name(), c.running)
			}
		}
	}
	if n == 0 && len(owners) > 0 || n != len(c.running) {
		c.t.Errorf("%s: %d leases, and the calls %v", when, n, c.running)
	}
}

// Each range has one call on one server: after joins, moves, outages and Close. A range moves after its call has
// returned.
func TestEach(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		all := &consumers{t: t, lingers: time.Second, running: make(map[leasehold.Lease]string)}
		a, b := c.Node("a"), c.Node("b")
		oa := all.join(a, moving(a))
		c.Settle()
		all.want("one server", oa)
		ob := all.join(b, moving(b))
		c.Settle()
		c.Advance(20 * time.Second)
		if len(ob.Leases()) == 0 {
			t.Fatal("no range has moved")
		}
		all.want("after moves", oa, ob)
		leader := c.KillLeader()
		c.Advance(30 * time.Second) // the leases are suspended
		all.want("in an outage")
		c.StartManager(leader)
		c.Settle()
		c.Advance(2 * time.Second)
		all.want("after an outage", oa, ob)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := oa.Close(ctx); err != nil {
			t.Error(err)
		}
		c.Settle()
		all.want("after Close", ob)
		if all.late > 0 {
			t.Errorf("%d calls began while another server's call ran", all.late)
		}
	})
}

// A call that does not return in time prevents the move, and work is called again.
func TestEachDelaysMove(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		all := &consumers{t: t, lingers: 8 * time.Second, running: make(map[leasehold.Lease]string)}
		a, b := c.Node("a"), c.Node("b")
		oa := all.join(a, moving(a))
		c.Settle()
		ob := all.join(b, moving(b))
		c.Advance(6 * time.Second) // StopTimeout is 5s
		key := leasehold.KeyOf("x")
		if _, ok := oa.Check(key); !ok {
			t.Error("the range has moved before its call has returned")
		}
		c.Advance(10 * time.Second)
		all.want("after the failed move", oa, ob)
		if all.late > 0 {
			t.Errorf("%d calls began while another server's call ran", all.late)
		}
	})
}

// Work that fails is called again after a backoff; work that returns nil is complete.
func TestEachRetries(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		o := c.Node("a").Join(owner.Config{})
		c.Settle()
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := time.Now()
		var at []time.Duration
		ended := make(chan error, 1)
		go func() {
			ended <- owner.Each(ctx, o, func(context.Context, leasehold.Lease) error {
				if at = append(at, time.Since(begun)); len(at) < 12 {
					return errors.New("the queue is down")
				}
				return nil
			})
		}()
		c.Advance(10 * time.Minute)
		stop := errors.New("stop")
		cancel(stop)
		if err := <-ended; !errors.Is(err, stop) {
			t.Errorf("Each returns %v", err)
		}
		// 100 ms, doubled up to 30 s.
		if len(at) != 12 || at[1]-at[0] != 100*time.Millisecond || at[11]-at[10] != 30*time.Second {
			t.Errorf("work was called after %v", at)
		}
		if err := owner.Each(t.Context(), o, func(context.Context, leasehold.Lease) error { return o.Close(t.Context()) }); err != nil {
			t.Errorf("Each returns %v after Close", err)
		}
	})
}
