package manager_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// recordSize is the size of the record that an owner with a Mover sends.
const recordSize = 1000

// joinMoving adds an owner with a Mover, whose state is one record per range. Before it stops serving a range it waits
// until hold is closed, if it is set.
func (c *cluster) joinMoving(name string, hold <-chan struct{}) *owner.Owner {
	c.t.Helper()
	return c.joinMovingAs(name, hold, func(*owner.Config) {})
}

func (c *cluster) joinMovingAs(name string, hold <-chan struct{}, change func(*owner.Config)) *owner.Owner {
	c.t.Helper()
	at := name + ":81"
	listener := bufconn.Listen(1 << 16)
	c.mu.Lock()
	c.at[at] = listener
	c.mu.Unlock()
	cfg := c.ownerConfig(name)
	cfg.Mover = &owner.Mover{
		Listener: listener, Advertise: at, DialOptions: []grpc.DialOption{grpc.WithContextDialer(c.dial)},
		Credentials: insecure.NewCredentials(), ServerCredentials: insecure.NewCredentials(),
		Export: func(ctx context.Context, out *owner.Export) error {
			if err := out.Send(make([]byte, recordSize)); err != nil {
				return err
			}
			if hold != nil {
				select {
				case <-hold:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return out.Stop()
		},
		Import: func(_ context.Context, in *owner.Import) (func(leasehold.Lease), error) {
			for _, err := range in.Records() {
				if err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
	change(&cfg)
	o, err := owner.Join(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.leave(o) })
	return o
}

// drain sends a drain, or its cancellation, to a manager.
func (c *cluster) drain(at string, r *leaseholdv1.DrainOwnerRequest) (*leaseholdv1.Plan, error) {
	r.Version, r.Namespace = wire.Version, "pool"
	answer, err := c.admin(at).DrainOwner(c.t.Context(), r)
	return answer.GetPlan(), wire.ToError(err)
}

// listed returns an owner of a manager's list, or nil.
func (c *cluster) listed(at, name string) *leaseholdv1.OwnerStatus {
	c.t.Helper()
	answer, err := c.admin(at).ListOwners(c.t.Context(), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: "pool"})
	if err != nil {
		c.t.Fatal(wire.ToError(err))
	}
	for _, o := range answer.GetOwners() {
		if o.GetHolder().GetOwner() == name {
			return o
		}
	}
	return nil
}

// moves returns the moves of a manager's list.
func (c *cluster) moves(at string) *leaseholdv1.ListMovesResponse {
	c.t.Helper()
	answer, err := c.admin(at).ListMoves(c.t.Context(), &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: "pool"})
	if err != nil {
		c.t.Fatal(wire.ToError(err))
	}
	return answer
}

// kinds returns the number of changes around a key by kind.
func (c *cluster) kinds(at string, key leasehold.Key) map[leaseholdv1.ChangeKind]int {
	c.t.Helper()
	answer, err := c.admin(at).ListHistory(c.t.Context(), &leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: "pool", Key: uint64(key)})
	if err != nil {
		c.t.Fatal(wire.ToError(err))
	}
	out := map[leaseholdv1.ChangeKind]int{}
	for _, e := range answer.GetEntries() {
		out[e.GetKind()]++
		if moved := e.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_MOVED; moved != (e.GetFrom() != nil) {
			c.t.Errorf("change %d is a %v, and comes from %v", e.GetLsn(), e.GetKind(), e.GetFrom())
		}
	}
	return out
}

// wantPlan checks the total of a plan.
func wantPlan(t *testing.T, p *leaseholdv1.Plan, from, to string, share, lost float64) {
	t.Helper()
	sum := 0.0
	for _, m := range p.GetMoves() {
		sum += m.GetShare()
		if m.GetFrom() != from || m.GetTo() != to || m.GetWithState() != (lost == 0) {
			t.Errorf("planned from %s to %s, with state: %t", m.GetFrom(), m.GetTo(), m.GetWithState())
		}
	}
	if !near(sum, share) || !near(p.GetShare(), share) || !near(p.GetShareLost(), lost) || int(p.GetTotal()) != len(p.GetMoves()) {
		t.Errorf("the plan is %v, of which are listed %v, want %v and %v lost", p, sum, share, lost)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// A range that cannot be moved is logged once with its target, however often it is retried.
func TestFailedMovesAreNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		log := &diary{}
		c.logs = log
		c.start("m1")
		ns := pool()
		ns.MoveTimeout = int64(time.Second)
		c.create("m1", ns)
		hold := make(chan struct{})
		a := c.joinMoving("a", hold)
		eventually(t, time.Minute, "a has everything", func() bool { return complete(a) })
		c.joinMoving("b", nil)
		if _, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute) // with retries
		close(hold)
		if n := log.count("could not be moved to b: timeout without progress"); n != 1 {
			t.Errorf("the failed move is logged %d times, want 1", n)
		}
		if n := log.count("the state of 0000000000000000-"); n != 1 {
			t.Errorf("its range is logged %d times, want 1: %q", n, log.lines)
		}
	})
}

// The status has the reason why there is no rebalancing.
func TestStatusHasReasonOfLull(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, time.Minute, "a has everything", func() bool { return complete(a) })
		const want = "the loads of 0 % of the keys are known, and rebalancing starts at 90 %"
		if got := c.status("m1").GetNamespaces()[0].GetLull(); got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	})
}
