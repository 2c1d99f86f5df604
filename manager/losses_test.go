package manager_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// joinSevered joins an owner and returns a function that cuts all its connections, like a crash of its process.
func (c *cluster) joinSevered(name string, options ...grpc.DialOption) (o *owner.Owner, kill func()) {
	var (
		mu    sync.Mutex
		dead  bool
		conns []net.Conn
	)
	cfg := c.ownerConfig(name)
	cfg.DialOptions = append(append(cfg.DialOptions, options...), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := c.dial(ctx, addr)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && dead {
			_ = conn.Close()
			return nil, errors.New("the owner is dead")
		}
		if err == nil {
			conns = append(conns, conn)
		}
		return conn, err
	}))
	o, err := owner.Join(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.leave(o) })
	return o, func() {
		mu.Lock()
		defer mu.Unlock()
		dead = true
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

// collectLosses reads losses after an LSN for some time.
func collectLosses(t *testing.T, l *lookup.Lookup, lsn leasehold.LSN, during time.Duration) (losses []leasehold.Loss) {
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	for loss, err := range l.LossesSince(ctx, lsn) {
		if err != nil {
			break
		}
		losses = append(losses, loss)
	}
	return losses
}

func ranges(losses []leasehold.Loss) keyrange.Set {
	var all []leasehold.Range
	for _, loss := range losses {
		all = append(all, loss.Range)
	}
	return keyrange.NewSet(all...)
}

// TestDisklessLossesAreExact: if the leader of a diskless group and one of four owners fail together, lookups report
// the keys of that owner and no others: a connected lookup, one that resumes from an earlier LSN, and one that stops
// after each loss and resumes.
func TestDisklessLossesAreExact(t *testing.T) {
	for _, policy := range []string{"balanced", "consistent"} {
		t.Run(policy, func(t *testing.T) {
			withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
				cfg := pool()
				cfg.Policy = policy
				c.create(leader, cfg)
				a, b, d := c.join("a"), c.join("b"), c.join("d")
				e, kill := c.joinSevered("e")
				owners := []*owner.Owner{a, b, d, e}
				eventually(t, time.Minute, "all keys are owned", func() bool {
					for _, o := range owners {
						if len(o.Leases()) == 0 {
							return false
						}
					}
					return complete(owners...)
				})
				time.Sleep(30 * time.Second) // until the policy is stable
				var lost []leasehold.Range
				for _, lease := range e.Leases() {
					lost = append(lost, lease.Range)
				}
				want := keyrange.NewSet(lost...)
				l := c.open()
				before := l.LSN()
				kill()
				c.crash(leader)
				check := func(who string, losses []leasehold.Loss) {
					t.Helper()
					got := ranges(losses)
					if more, less := got.Subtract(want), want.Subtract(got); len(more)+len(less) > 0 {
						t.Errorf("%s: %v was reported but not lost, %v was lost but not reported", who, more, less)
					}
				}
				check("connected", collectLosses(t, l, before, 25*time.Second))
				check("resumed", collectLosses(t, c.open(), before, time.Second))
				var steps []leasehold.Loss
				for next, more := before, true; more; {
					more = false
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					for loss, err := range l.LossesSince(ctx, next) {
						if err != nil {
							break
						}
						if steps = append(steps, loss); loss.Resume > next {
							next, more = loss.Resume, true
							break
						}
					}
					cancel()
				}
				check("resumed after each loss", steps)
			})
		})
	}
}

// TestDisklessFailoverWithoutLoss: a failover of a diskless group without a loss reports none, not even to a lookup
// in another process that resumes from an earlier LSN.
func TestDisklessFailoverWithoutLoss(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		a, b := c.join("a"), c.join("b")
		eventually(t, time.Minute, "all keys are owned", func() bool {
			return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0
		})
		time.Sleep(20 * time.Second)
		connected := c.open()
		before := connected.LSN()
		for range 2 { // the second failover adopts the adopted leases of the first
			c.crash(leader)
			c.peers.mend(leader)
			c.start(leader)
			leader = c.leads(time.Minute)
			time.Sleep(30 * time.Second)
			if losses := collectLosses(t, connected, before, time.Second); len(losses) > 0 {
				t.Errorf("connected: %v", losses)
			}
			if losses := collectLosses(t, c.open(), before, time.Second); len(losses) > 0 {
				t.Errorf("resumed: %v", losses)
			}
		}
		synctest.Wait()
	})
}
