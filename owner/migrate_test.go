package owner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// until sends requests until a condition is true, with a timeout.
func (c *crowd) until(most time.Duration, so func() bool) {
	c.t.Helper()
	for begun := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
		c.send()
		if time.Since(begun) > most {
			c.t.Fatalf("timeout after %v", most)
		}
	}
}

// close closes a server while requests continue.
func (c *crowd) close(s *counting, most time.Duration) (err error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), most)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = s.owner.Close(ctx)
	}()
	c.until(most+time.Second, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	return err
}

// The state of a range moves to an owner that joins, while requests
// change it, and without a loss.
func TestStateMovesToNewOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		a := n.counts("10.0.0.1:8080", asConfigured)
		crowd := newCrowd(t, a)
		crowd.until(10*time.Second, func() bool { return len(a.has()) == 256 })
		crowd.send()

		b := n.counts("10.0.0.2:8080", asConfigured)
		crowd.servers = append(crowd.servers, b)
		crowd.until(time.Minute, func() bool { return len(b.has()) > 80 && len(a.has())+len(b.has()) == 256 })
		crowd.send()
		if got := leader.committed(" leaves "); got != 0 {
			t.Errorf("%d losses: %q", got, leader.changes)
		}
		if leader.committed(" moves from ") == 0 || a.events.count("revoked: moved") == 0 || b.events.count("granted") == 0 {
			t.Errorf("events %q and %q", a.events.lines, b.events.lines)
		}
		if a.events.count("revoked: released") > 0 {
			t.Errorf("events %q", a.events.lines)
		}
		for i, s := range crowd.servers {
			if err := s.owner.Close(t.Context()); (err != nil) != (i == len(crowd.servers)-1) { // the last one loses its state
				t.Errorf("server %d: %v", i, err)
			}
		}
	})
}

// All servers restart, one after the other, under load, and no state is
// lost.
func TestRollingRestartLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		addrs := []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}
		crowd := newCrowd(t)
		total := func() int {
			held := 0
			for _, s := range crowd.servers {
				held += len(s.has())
			}
			return held
		}
		for _, addr := range addrs {
			crowd.servers = append(crowd.servers, n.counts(addr, asConfigured))
			crowd.until(time.Minute, func() bool { return total() == 256 })
		}
		for i, addr := range addrs {
			if err := crowd.close(crowd.servers[i], time.Minute); err != nil {
				t.Fatal(err)
			}
			crowd.until(time.Minute, func() bool { return total() == 256 })
			crowd.servers[i] = n.counts(addr, asConfigured)
			fresh := crowd.servers[i]
			crowd.until(time.Minute, func() bool { return len(fresh.has()) > 40 && total() == 256 })
		}
		if got := leader.committed(" leaves "); got != 0 {
			t.Errorf("%d losses: %q", got, leader.changes)
		}
		for _, s := range crowd.servers[1:] {
			if err := crowd.close(s, time.Minute); err != nil {
				t.Error(err)
			}
		}
		last := crowd.servers[0]
		crowd.until(10*time.Second, func() bool { return len(last.has()) == 256 })
		begun := time.Now() // without another owner Close does not wait
		err := last.owner.Close(t.Context())
		if took := time.Since(begun); took > 5*time.Second || err == nil || !strings.Contains(err.Error(), "no other owner can take it") {
			t.Errorf("the last owner closes after %v: %v", took, err)
		}
	})
}

// An owner without a Mover, among others with one, gets ranges without
// their state, and Close releases them at once.
func TestOwnersWithoutMover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		a := n.counts("10.0.0.1:8080", asConfigured)
		time.Sleep(time.Second)
		b := mustJoin(t, n.config("10.0.0.2:8080"))
		time.Sleep(10 * time.Second)
		if holds(b) == 0 || holds(b)+holds(a.owner) != 256 {
			t.Errorf("a holds %d, b holds %d", holds(a.owner), holds(b))
		}
		if leader.committed("(released)") == 0 || leader.committed(" moves from ") > 0 {
			t.Errorf("changes: %q", leader.changes)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantError(t, a.owner.Close(t.Context()), leasehold.ErrUnavailable, "is lost: no other owner can take it")
	})
}

// Export.Generation distinguishes state of an earlier tenure.
func TestExportGeneration(t *testing.T) {
	e := &Export{departure: &departure{leases: []leasehold.Lease{lease(10, 3), lease(30, 7)}}}
	for key, want := range map[leasehold.Key]leasehold.Generation{0: 0, 9: 0, 10: 3, 19: 3, 20: 0, 29: 0, 30: 7, 39: 7, 40: 0, 1 << 63: 0} {
		if got := e.Generation(key); got != want {
			t.Errorf("key %v: generation %d, want %d", key, got, want)
		}
	}
}

// A leaving owner imports nothing.
func TestLeavingOwnerImportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		a := n.counts("10.0.0.1:8080", asConfigured)
		crowd := newCrowd(t, a)
		crowd.until(10*time.Second, func() bool { return len(a.has()) == 256 })
		begun := make(chan struct{}, 1000)
		b := n.counts("10.0.0.2:8080", func(c *Config) {
			whole := c.Mover.Import
			c.Mover.Import = func(ctx context.Context, in *Import) (func(leasehold.Lease), error) {
				begun <- struct{}{}
				time.Sleep(3 * time.Second)
				return whole(ctx, in)
			}
		})
		crowd.servers = append(crowd.servers, b)
		<-begun
		if err := crowd.close(b, time.Minute); err != nil {
			t.Error(err)
		}
		crowd.until(10*time.Second, func() bool { return len(a.has()) == 256 })
		if leader.committed(" leaves ") > 0 || leader.committed(" moves from ") > 0 || b.events.count("granted") > 0 {
			t.Errorf("changes %q, events %q", leader.changes, b.events.lines)
		}
	})
}
