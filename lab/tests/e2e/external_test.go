//go:build unix

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// TestEtcdLeaderKilled: a failover of the etcd cluster does not affect owners or callers.
func TestEtcdLeaderKilled(t *testing.T) {
	t.Parallel()
	const ns, later = "before", "after"
	c := startEtcd(t)
	g := c.managers(t, 2)
	g.createNamespace(t, ns, keptLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.waitForAssignment(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, keptLease)

	victim := c.leader(t)
	victim.kill()
	g.createNamespace(t, later, keptLease) // two servers are a quorum
	g.join(t, later, "cid")
	g.waitForAssignment(t, later, "cid")
	g.waitForAssignment(t, ns, "ann", "bob")
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// TestEtcdQuorumLostForShort: without a quorum no manager leads and no lease is granted. If
// the quorum is back before leases expire, they are kept.
func TestEtcdQuorumLostForShort(t *testing.T) {
	t.Parallel()
	const ns, lease = "short", 2 * keptLease
	c := startEtcd(t)
	g := c.managers(t, 2)
	g.createNamespace(t, ns, lease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.waitForAssignment(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, lease)
	before := calls.places()

	c.loseQuorum(t)
	g.waitForNoLeader(t)
	wantJoinRefused(t, g, ns)
	if diff := cmp.Diff(before, calls.places()); diff != "" {
		t.Errorf("the lookup's table changed (-before +after):\n%s", diff)
	}
	c.restart(t)
	g.leader(t)
	g.waitForAssignment(t, ns, "ann", "bob")
	eventually(t, "the lookup's table is confirmed", func() error { return calls.maxAge(2 * time.Second) })
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// TestEtcdQuorumLostForLong: if the quorum is not back in time, leases are suspended and no
// key is granted. When it is back, they are resumed with the same generations, without losses.
func TestEtcdQuorumLostForLong(t *testing.T) {
	t.Parallel()
	const ns = "long"
	c := startEtcd(t)
	g := c.managers(t, 2)
	g.createNamespace(t, ns, lostLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.waitForAssignment(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	calls := g.open(t, ns, eventTimeout)
	had := append(g.leasesOf(t, ns, "ann"), g.leasesOf(t, ns, "bob")...)

	c.loseQuorum(t)
	within(t, lostLease+slack, "the leases are suspended", func() error {
		if n := len(ann.Leases()) + len(bob.Leases()); n > 0 {
			return leasehold.Errorf("wait", leasehold.Other, "leases", "%d are held", n)
		}
		return nil
	})
	stop := neverHeld(t, ann, bob)
	wantJoinRefused(t, g, ns)
	<-time.After(regrant(lostLease)) // enough for a manager that ignores its store to grant the keys
	stop()

	c.restart(t)
	g.leader(t)
	g.waitForAssignment(t, ns, "ann", "bob")
	eventually(t, "all leases from before are held", func() error {
		return sameLeases(had, append(ann.Leases(), bob.Leases()...))
	})
	eventually(t, "the lookup's table is confirmed", func() error { return calls.maxAge(2 * time.Second) })
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// loseQuorum kills two of three servers, one of them the leader.
func (c etcdCluster) loseQuorum(t *testing.T) {
	t.Helper()
	leader := c.leader(t)
	leader.kill()
	c.followers(leader)[0].kill()
}

// restart starts servers that are not running.
func (c etcdCluster) restart(t *testing.T) {
	t.Helper()
	for _, s := range c {
		if !s.Alive() {
			s.start(t)
		}
	}
	c.leader(t)
}

// waitForNoLeader waits until no manager leads.
func (g *group) waitForNoLeader(t *testing.T) {
	t.Helper()
	within(t, leaderTTL+slack, "no manager leads", func() error {
		if m, err := g.findLeader(t); err == nil {
			return errors.New(m.name + " leads")
		}
		return nil
	})
}

// wantJoinRefused requires that an owner cannot join.
func wantJoinRefused(t *testing.T, g *group, ns string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Addr: addrOf("late")})
	if err == nil {
		t.Errorf("an owner joined without a leader, and holds %v", o.Leases())
		_ = o.Close(ctx) // cleanup
		return
	}
	if leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Errorf("Join failed with %v, want kind %v", err, leasehold.ErrUnavailable)
	}
}
