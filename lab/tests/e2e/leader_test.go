//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// keptLease is the lease time where no lease may be lost, whatever the managers
// do: many times what a failover takes.
const keptLease = 16 * time.Second

// TestLeaderKilled: a leader that dies without a word is replaced, and nobody
// loses anything (Centrifuge 2.1.1).
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl="+leaderTTL.String())
	leader := g.leader(t)
	took := failover(t, g, leader, leader.kill)
	t.Logf("renewals resumed %v after the leader was killed; its TTL is %v", took, leaderTTL)
}

// TestLeaderStopped: a leader that stands still is replaced, and when it goes on
// it finds out that it leads no more.
func TestLeaderStopped(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl="+leaderTTL.String())
	leader := g.leader(t)
	took := failover(t, g, leader, func() { leader.signal(t, syscall.SIGSTOP) })
	t.Logf("renewals resumed %v after the leader was stopped; its TTL is %v", took, leaderTTL)
	leader.signal(t, syscall.SIGCONT)
	eventually(t, "the old leader follows the new one", func() error {
		status, err := getStatus(t, leader.addr)
		if err == nil && (status.GetLeader() == "" || status.GetLeader() == leader.addr) {
			err = errNotYet
		}
		return err
	})
}

// TestStatusWhileLeaderHangs: whoever wants to know what is wrong asks a standby,
// which does not wait for the leader until its caller has given up.
func TestStatusWhileLeaderHangs(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl=1m") // nobody takes over while the test runs
	leader := g.leader(t)
	g.whole(t)
	leader.signal(t, syscall.SIGSTOP)
	status, stdout, stderr := run(t, "status", "--managers="+g.without(leader).managers[0].addr)
	if status != 0 || !strings.Contains(stdout, leader.addr) {
		t.Errorf("status ended with status %d and does not name the leader, %s: %s%s", status, leader.addr, stdout, stderr)
	}
}

// failover ends a leader and returns after which time the next one has renewed
// everybody's leases. Meanwhile owners keep their leases and lookups
// their table.
func failover(t *testing.T, g *group, leader *manager, end func()) time.Duration {
	t.Helper()
	const ns = "failover"
	g.createNamespace(t, ns, keptLease)
	names := []string{"ann", "bob", "cid"}
	ann, bob, cid := g.join(t, ns, names[0]), g.join(t, ns, names[1]), g.join(t, ns, names[2])
	g.settled(t, ns, names...)
	exclusive(t, ann, bob, cid)
	g.steady(t, ns, ann, bob, cid)
	calls := g.open(t, ns, keptLease)
	before := calls.places()

	began := time.Now()
	end()
	others := g.without(leader)
	within(t, 4*leaderTTL+slack, "another manager renews all leases", func() error {
		next, err := others.findLeader(t)
		if err != nil {
			return err
		}
		owners, err := (&group{managers: []*manager{next}}).listOwners(t, ns)
		if err != nil {
			return err
		}
		return allHeard(owners, names)
	})
	took := time.Since(began)
	if diff := cmp.Diff(before, calls.places()); diff != "" {
		t.Errorf("the lookup finds other servers (-before +after):\n%s", diff)
	}
	others.settled(t, ns, names...)
	eventually(t, "the lookup knows that its table is complete", func() error { return calls.younger(2 * time.Second) })
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
	return took
}
