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

// TestEtcdLeaderKilled: the etcd cluster's own failover is nothing that an owner
// or a caller notices.
func TestEtcdLeaderKilled(t *testing.T) {
	t.Parallel()
	const ns, later = "before", "after"
	c := startEtcd(t)
	g := c.managers(t, 2)
	g.createNamespace(t, ns, keptLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.settled(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, keptLease)

	victim := c.leader(t)
	victim.kill()
	g.createNamespace(t, later, keptLease) // with one server less, everything works
	g.join(t, later, "cid")
	g.settled(t, later, "cid")
	g.settled(t, ns, "ann", "bob")
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
}

// TestEtcdQuorumLostForShort: without a majority nobody leads and nothing is
// granted. If it is back before the leases have run out, they are kept.
func TestEtcdQuorumLostForShort(t *testing.T) {
	t.Parallel()
	const ns, lease = "short", 2 * keptLease
	c := startEtcd(t)
	g := c.managers(t, 2)
	g.createNamespace(t, ns, lease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.settled(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, lease)
	before := calls.places()

	c.loseQuorum(t)
	g.leaderless(t)
	refuseOwner(t, g, ns)
	if diff := cmp.Diff(before, calls.places()); diff != "" {
		t.Errorf("the lookup finds other servers (-before +after):\n%s", diff)
	}
	c.restart(t)
	g.leader(t)
	g.settled(t, ns, "ann", "bob")
	eventually(t, "the lookup knows that its table is complete", func() error { return calls.younger(2 * time.Second) })
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
}

// TestEtcdQuorumLostForLong: if it is not back in time, the leases are suspended and
// nobody gets the keys. When it is back they are resumed, under the same generations, and
// nothing was lost.
func TestEtcdQuorumLostForLong(t *testing.T) {
	t.Parallel()
	const ns = "long"
	c := startEtcd(t)
	g := c.managers(t, 2)
	g.createNamespace(t, ns, lostLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.settled(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	calls := g.open(t, ns, patience)
	had := append(g.leasesOf(t, ns, "ann"), g.leasesOf(t, ns, "bob")...)

	c.loseQuorum(t)
	within(t, lostLease+slack, "the leases are suspended", func() error {
		if n := len(ann.Leases()) + len(bob.Leases()); n > 0 {
			return leasehold.Errorf("wait", leasehold.Other, "leases", "%d are held", n)
		}
		return nil
	})
	stop := nobody(t, ann, bob)
	refuseOwner(t, g, ns)
	<-time.After(regrant(lostLease)) // by now a manager that did not ask the store would have granted
	stop()

	c.restart(t)
	g.leader(t)
	g.settled(t, ns, "ann", "bob")
	eventually(t, "everybody has the leases from before", func() error {
		return sameLeases(had, append(ann.Leases(), bob.Leases()...))
	})
	eventually(t, "the lookup knows that its table is complete", func() error { return calls.younger(2 * time.Second) })
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
}

// loseQuorum kills two of three, one of them the leader.
func (c etcdCluster) loseQuorum(t *testing.T) {
	t.Helper()
	leader := c.leader(t)
	leader.kill()
	c.followers(leader)[0].kill()
}

// restart starts whoever is dead.
func (c etcdCluster) restart(t *testing.T) {
	t.Helper()
	for _, s := range c {
		if !s.Alive() {
			s.start(t)
		}
	}
	c.leader(t)
}

// leaderless waits until no manager leads.
func (g *group) leaderless(t *testing.T) {
	t.Helper()
	within(t, leaderTTL+slack, "nobody leads", func() error {
		if m, err := g.findLeader(t); err == nil {
			return errors.New(m.name + " leads")
		}
		return nil
	})
}

// refuseOwner wants nobody to be let in.
func refuseOwner(t *testing.T, g *group, ns string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{Namespace: leasehold.Namespace(ns), Managers: g.addrs(), Addr: addrOf("late")})
	if err == nil {
		t.Errorf("an owner was let in with nobody leading, and has %v", o.Leases())
		_ = o.Close(ctx) // it should not be there
		return
	}
	if leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Errorf("an owner is refused with %v, want kind %v", err, leasehold.ErrUnavailable)
	}
}
