package leaseholdtest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

var key = leasehold.KeyOf("alice")

// two runs a test with two settled owners: the owner of the key, and the
// other.
func two(t *testing.T, test func(t *testing.T, c *leaseholdtest.Cluster, first, second *leaseholdtest.Node, has, hasNot *owner.Owner)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a, b := c.Node("a"), c.Node("b")
		oa, ob := a.Join(owner.Config{}), b.Join(owner.Config{})
		c.Settle()
		if name, ok := c.Owner(key); !ok {
			t.Fatal("the key has no owner")
		} else if name == "b" {
			a, b, oa, ob = b, a, ob, oa
		}
		test(t, c, a, b, oa, ob)
	})
}

func owns(o *owner.Owner) bool {
	_, ok := o.Check(key)
	return ok
}

func TestKill(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, a, b *leaseholdtest.Node, oa, ob *owner.Owner) {
		l := c.Node("caller").Lookup()
		losses := make(chan leasehold.Loss, 100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for loss, err := range l.Losses(ctx) {
				if err != nil {
					break
				}
				losses <- loss
			}
		}()
		c.Advance(time.Second)
		if !owns(oa) || owns(ob) {
			t.Fatal("the managers name another owner")
		}
		a.Kill()
		if owns(oa) {
			t.Error("a killed owner holds the key")
		}
		if addr, ok := l.Find(key); !ok || addr != a.Addr() {
			t.Errorf("before the lease has expired: %q, %v", addr, ok)
		}
		c.Settle()
		if !owns(ob) {
			t.Error("the other owner does not hold the key")
		}
		if addr, ok := l.Find(key); !ok || addr != b.Addr() {
			t.Errorf("found %q, %v", addr, ok)
		}
		if name, ok := c.Owner(key); !ok || name != b.Name() {
			t.Errorf("Owner returns %q, %v", name, ok)
		}
		if len(losses) == 0 {
			t.Error("the loss was not reported")
		}
		cancel()
		<-done

		again := c.Node(a.Name())
		if again == a {
			t.Fatal("Node returns the killed node")
		}
		again.Join(owner.Config{})
		c.Settle()
		if got := c.Node(a.Name()); got != again {
			t.Error("Node returns a new node for a running one")
		}
	})
}

func TestPause(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, a, _ *leaseholdtest.Node, oa, ob *owner.Owner) {
		lease, _ := oa.Check(key)
		a.Pause()
		c.Advance(time.Second)
		if owns(ob) {
			t.Fatal("the other owner holds the key before the lease expires")
		}
		c.Advance(time.Minute)
		if !owns(ob) || oa.Held(lease) {
			t.Error("a paused owner keeps its lease")
		}
		a.Resume()
		c.Settle()
		if len(oa.Leases()) == 0 {
			t.Error("a resumed owner gets no lease")
		}
	})
}

// A partitioned owner loses its leases, and callers
// still reach it.
func TestCut(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, a, _ *leaseholdtest.Node, oa, ob *owner.Owner) {
		a.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if owns(oa) {
				_, _ = io.WriteString(w, "mine")
			}
		}))
		client := c.Node("caller").Client()
		get := func() string {
			r, err := client.Get("http://" + a.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close() //nolint:errcheck // read only
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if got := get(); got != "mine" {
			t.Errorf("got %q", got)
		}
		a.Cut()
		c.Advance(time.Minute)
		if got := get(); got != "" || !owns(ob) {
			t.Errorf("while partitioned: response %q, the other owns the key: %v", got, owns(ob))
		}
		a.Heal()
		c.Settle()
	})
}

func TestExpire(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, a, _ *leaseholdtest.Node, oa, ob *owner.Owner) {
		lease, _ := oa.Check(key)
		began := time.Now()
		a.Expire()
		// The last renewal is at most a quarter of the lease ago, and the manager waits a fifth longer.
		if passed := time.Since(began); passed < 9*time.Second || passed > 13*time.Second {
			t.Errorf("a lease of 10 s has expired in %v", passed)
		}
		c.Advance(time.Second)
		if oa.Held(lease) || !owns(ob) {
			t.Error("the lease is still held, or the other owner has none")
		}
		c.Settle()
		if len(oa.Leases()) == 0 {
			t.Error("the owner has no lease after Heal")
		}
	})
}

func TestManagers(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3, Namespace: "presence", Lease: 4 * time.Second, Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		o := c.Node("a").Join(owner.Config{})
		c.Settle()
		lease, ok := o.Check(key)
		if !ok || lease.Range != leasehold.All {
			t.Fatalf("%v, %v", lease, ok)
		}
		old := c.KillLeader()
		c.Settle()
		if !o.Held(lease) {
			t.Error("a lease is lost in a failover")
		}
		c.StartManager(old)
		c.KillLeader()
		c.Settle()
		if !o.Held(lease) {
			t.Error("a lease is lost in the second failover")
		}
		if c.Namespace() != "presence" || len(c.Managers()) != 3 {
			t.Error(c.Namespace(), c.Managers())
		}
	})
}

// Services of one application have separate namespaces, with the same
// managers and network.
func TestNamespaces(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		other := c.In("other")
		o, p := c.Node("a").Join(owner.Config{}), other.Node("b").Join(owner.Config{})
		c.Settle()
		other.Settle()
		if !owns(o) || !owns(p) {
			t.Error("each owner must hold all keys of its namespace")
		}
		if name, _ := c.Owner(key); name != "a" {
			t.Error(name)
		}
		if name, _ := other.Owner(key); name != "b" || other.Namespace() != "other" || c.In("other") != other {
			t.Error(name, other.Namespace())
		}
		if addr, ok := other.Node("caller").Lookup().Find(key); !ok || addr != "b:8080" {
			t.Error(addr, ok)
		}
	})
}

// Goroutines that end shortly after the test do not fail it.
func TestLingeringGoroutines(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a := c.Node("a")
		a.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10)) // makes the server close the connection
			if err == nil {
				t.Error("the whole body was read")
			}
		}))
		answer, err := c.Node("caller").Client().Post("http://"+a.Addr(), "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err == nil {
			_ = answer.Body.Close()
		}
	})
}
