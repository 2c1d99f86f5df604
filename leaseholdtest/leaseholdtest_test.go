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

// two runs a test with two owners that have settled: the one that has the key, and the
// other.
func two(t *testing.T, test func(t *testing.T, c *leaseholdtest.Cluster, first, second *leaseholdtest.Node, has, hasNot *owner.Owner)) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a, b := c.Node("a"), c.Node("b")
		oa, ob := a.Join(owner.Config{}), b.Join(owner.Config{})
		c.Settle()
		if name, ok := c.Owner(key); !ok {
			t.Fatal("nobody has the key")
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
			t.Fatal("not the owner that the managers say")
		}
		a.Kill()
		if owns(oa) {
			t.Error("a killed owner has the key")
		}
		if addr, ok := l.Find(key); !ok || addr != a.Addr() {
			t.Errorf("before anybody can know it: %q, %v", addr, ok)
		}
		c.Settle()
		if !owns(ob) {
			t.Error("the other has not got the key")
		}
		if addr, ok := l.Find(key); !ok || addr != b.Addr() {
			t.Errorf("found %q, %v", addr, ok)
		}
		if name, ok := c.Owner(key); !ok || name != b.Name() {
			t.Errorf("the managers say %q, %v", name, ok)
		}
		if len(losses) == 0 {
			t.Error("nobody was told of the loss")
		}
		cancel()
		<-done

		again := c.Node(a.Name())
		if again == a {
			t.Fatal("the node is the one that was killed")
		}
		again.Join(owner.Config{})
		c.Settle()
		if got := c.Node(a.Name()); got != again {
			t.Error("a node that lives was made anew")
		}
	})
}

func TestPause(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, a, _ *leaseholdtest.Node, oa, ob *owner.Owner) {
		lease, _ := oa.Check(key)
		a.Pause()
		c.Advance(time.Second)
		if owns(ob) {
			t.Fatal("the other has the key within the lease")
		}
		c.Advance(time.Minute)
		if !owns(ob) || oa.Held(lease) {
			t.Error("a paused owner keeps its lease")
		}
		a.Resume()
		c.Settle()
		if len(oa.Leases()) == 0 {
			t.Error("an owner that goes on gets nothing")
		}
	})
}

// TestCut: an owner that does not reach the managers loses its leases, and callers
// reach it on.
func TestCut(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, a, _ *leaseholdtest.Node, oa, ob *owner.Owner) {
		a.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if owns(oa) {
				_, _ = io.WriteString(w, "mine")
			}
		}))
		client := c.Node("caller").Client()
		ask := func() string {
			r, err := client.Get("http://" + a.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close() //nolint:errcheck // it was only read
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if got := ask(); got != "mine" {
			t.Errorf("got %q", got)
		}
		a.Cut()
		c.Advance(time.Minute)
		if got := ask(); got != "" || !owns(ob) {
			t.Errorf("cut off, it says %q, and the other owns: %v", got, owns(ob))
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
		// It was renewed at most a quarter of itself ago, and is waited for a fifth longer.
		if passed := time.Since(began); passed < 9*time.Second || passed > 13*time.Second {
			t.Errorf("a lease of 10 s ran out in %v", passed)
		}
		c.Advance(time.Second)
		if oa.Held(lease) || !owns(ob) {
			t.Error("the lease is still there, or the other has none")
		}
		c.Settle()
		if len(oa.Leases()) == 0 {
			t.Error("it is not back")
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
			t.Error("a failover lost a lease")
		}
		c.StartManager(old)
		c.KillLeader()
		c.Settle()
		if !o.Held(lease) {
			t.Error("the second failover lost a lease")
		}
		if c.Namespace() != "presence" || len(c.Managers()) != 3 {
			t.Error(c.Namespace(), c.Managers())
		}
	})
}

// TestNamespaces: services of one application have namespaces of their own, on the same
// managers and the same network.
func TestNamespaces(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		other := c.In("other")
		o, p := c.Node("a").Join(owner.Config{}), other.Node("b").Join(owner.Config{})
		c.Settle()
		other.Settle()
		if !owns(o) || !owns(p) {
			t.Error("each has all keys of its namespace")
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

// TestLingering: what ends a moment after it was told to does not fail a test.
func TestLingering(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a := c.Node("a")
		a.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10)) // and the server closes the connection
			if err == nil {
				t.Error("all of it was read")
			}
		}))
		answer, err := c.Node("caller").Client().Post("http://"+a.Addr(), "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err == nil {
			_ = answer.Body.Close()
		}
	})
}
