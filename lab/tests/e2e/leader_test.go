//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// keptLease is a lease time much longer than a failover: no lease may be lost.
const keptLease = 16 * time.Second

// TestLeaderKilled: a killed leader is replaced, and no lease is lost (Centrifuge 2.1.1).
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl="+leaderTTL.String())
	leader := g.leader(t)
	took := failover(t, g, leader, leader.kill)
	t.Logf("renewals resumed %v after the leader was killed; its TTL is %v", took, leaderTTL)
}

// TestLeaderStopped: a stopped leader is replaced, and follows the new leader when it is
// continued.
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

// TestStatusWhileLeaderHangs: a standby returns its status before the caller's timeout
// although the leader does not reply.
func TestStatusWhileLeaderHangs(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl=1m") // longer than the test: no failover
	leader := g.leader(t)
	g.waitForManagers(t)
	leader.signal(t, syscall.SIGSTOP)
	status, stdout, stderr := run(t, "status", "--managers="+g.without(leader).managers[0].addr)
	if status != 0 || !strings.Contains(stdout, leader.addr) {
		t.Errorf("exit status %d, and the output does not name the leader, %s: %s%s", status, leader.addr, stdout, stderr)
	}
}

// failover ends a leader, and returns the time until the next leader has renewed all
// leases. Owners keep their leases and lookups their table.
func failover(t *testing.T, g *group, leader *manager, end func()) time.Duration {
	t.Helper()
	const ns = "failover"
	g.createNamespace(t, ns, keptLease)
	names := []string{"ann", "bob", "cid"}
	ann, bob, cid := g.join(t, ns, names[0]), g.join(t, ns, names[1]), g.join(t, ns, names[2])
	g.waitForAssignment(t, ns, names...)
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
		return allRenewed(owners, names)
	})
	took := time.Since(began)
	if diff := cmp.Diff(before, calls.places()); diff != "" {
		t.Errorf("the lookup's table changed (-before +after):\n%s", diff)
	}
	others.waitForAssignment(t, ns, names...)
	eventually(t, "the lookup's table is confirmed", func() error { return calls.maxAge(2 * time.Second) })
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
	return took
}
