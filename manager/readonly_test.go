package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A lookup, which may only read, sends a later term, or an LSN that does not exist. Neither its own namespace nor
// another is delayed, and no number jumps.
func TestLookupDoesNotMoveNumbers(t *testing.T) {
	quiet := afterFollow(t, func(_ *leaseholdv1.FollowRequest) {})
	for name, change := range map[string]func(*leaseholdv1.FollowRequest){
		"a term five ahead":                func(r *leaseholdv1.FollowRequest) { r.Term += 5 },
		"a term far ahead":                 func(r *leaseholdv1.FollowRequest) { r.Term += 1e8 },
		"an lsn ahead":                     func(r *leaseholdv1.FollowRequest) { r.Lsn = 1000 },
		"an lsn far ahead":                 func(r *leaseholdv1.FollowRequest) { r.Lsn = 1 << 50 },
		"an lsn ahead of a term far ahead": func(r *leaseholdv1.FollowRequest) { r.Lsn, r.Term = 1<<50, r.Term+1e8 },
	} {
		t.Run(name, func(t *testing.T) {
			got := afterFollow(t, change)
			if got.term != quiet.term || got.pool != quiet.pool || got.other != quiet.other {
				t.Errorf("term and LSNs are %+v, want %+v", got, quiet)
			}
			if got.grant > quiet.grant+time.Second || got.grantOther > quiet.grantOther+time.Second {
				t.Errorf("first grants after %v and %v, want %v and %v", got.grant, got.grantOther, quiet.grant, quiet.grantOther)
			}
		})
	}
}

type numbers struct {
	term, pool, other uint64
	grant, grantOther time.Duration // until a new owner has a lease, in each namespace
}

// afterFollow sends a request of a lookup of the namespace "other", and returns the resulting numbers.
func afterFollow(t *testing.T, change func(*leaseholdv1.FollowRequest)) (n numbers) {
	return afterRequest(t, func(ctx context.Context, conn *grpc.ClientConn, term uint64) error {
		s, err := leaseholdv1.NewLookupServiceClient(conn).Follow(ctx)
		if err != nil {
			return err
		}
		r := &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: "other", Seq: 1, Term: term}
		change(r)
		return s.Send(r)
	})
}

// An owner claims a generation that was never granted. The group does not elect another leader, and the other
// namespace is not delayed, whatever happens in the namespace of the owner.
func TestOwnerDoesNotMoveOtherNamespaces(t *testing.T) {
	quiet := afterFollow(t, func(_ *leaseholdv1.FollowRequest) {})
	clock := uint64(946_684_800) << 20 // at the beginning of the bubble
	for _, generation := range []uint64{1, 1000, 1 << 40, clock + 1<<36, clock + 1<<47, 1 << 62} {
		for _, suspended := range []bool{false, true} {
			t.Run(fmt.Sprintf("generation %d, suspended %t", generation, suspended), func(t *testing.T) {
				got := afterRequest(t, func(ctx context.Context, conn *grpc.ClientConn, term uint64) error {
					s, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
					if err != nil {
						return err
					}
					return s.Send(&leaseholdv1.HoldRequest{
						Version: wire.Version, Namespace: "other", Seq: 1, Term: term, Suspended: suspended,
						Holder: &leaseholdv1.Holder{Owner: "eve", Session: []byte("0123456789abcdef"), Addr: "eve:80", Weight: 1},
						Leases: &leaseholdv1.LeaseSet{Starts: []uint64{0}, Limits: []uint64{0}, Generations: []uint64{generation}},
					})
				})
				if got.term != quiet.term || got.pool != quiet.pool || got.grant > quiet.grant+time.Second {
					t.Errorf("numbers %+v, want %+v", got, quiet)
				}
				if got.grantOther > time.Minute {
					t.Errorf("first grant in the namespace of the owner after %v", got.grantOther)
				}
			})
		}
	}
}

// afterRequest sends a request to the leader, and returns the resulting numbers.
func afterRequest(t *testing.T, send func(ctx context.Context, conn *grpc.ClientConn, term uint64) error) (n numbers) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		c.create("m1", &leaseholdv1.NamespaceConfig{Name: "other"})
		a := c.join("a")
		eventually(t, time.Minute, "complete", func() bool { return complete(a) })
		time.Sleep(20 * time.Second)
		conn, err := grpc.NewClient("passthrough:///"+addr("m1"), append(wire.DialOptions(), c.dialOptions()...)...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // unused
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := send(ctx, conn, c.status("m1").GetTerm()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		begun := time.Now()
		b := c.join("b")
		eventually(t, 5*time.Minute, "a new owner has a lease", func() bool { return len(b.Leases()) > 0 })
		n.grant, begun = time.Since(begun), time.Now()
		cfg := c.ownerConfig("o")
		cfg.Namespace = "other"
		o, err := owner.Join(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.leave(o)
		eventually(t, 5*time.Minute, "a new owner of the other has a lease", func() bool { return complete(o) })
		n.grantOther = time.Since(begun)
		time.Sleep(20 * time.Second)
		status := c.status("m1")
		n.term = status.GetTerm()
		for _, ns := range status.GetNamespaces() {
			if ns.GetName() == "pool" {
				n.pool = ns.GetLsn()
			} else {
				n.other = ns.GetLsn()
			}
		}
	})
	return n
}
