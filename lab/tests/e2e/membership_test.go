//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// TestGrowAndShrink: a fourth manager joins a group of three and becomes a member; a
// removed member exits with the reason. All leases are kept.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	const ns = "members"
	g := startThree(t)
	g.createNamespace(t, ns, keptLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.waitForAssignment(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	g.waitForManagers(t)

	fourth := newManager(t, "m4", "--peer-listen="+freeAddr(t), "--join="+g.managers[0].addr)
	fourth.start(t)
	g.managers = append(g.managers, fourth)
	g.waitForManagers(t)
	fourth.kill() // and restarts with its data
	fourth.start(t)
	g.waitForManagers(t)

	gone := g.leader(t) // the worst case
	rest := g.without(gone)
	if status, _, stderr := run(t, "manager", "remove", gone.name, "--managers="+strings.Join(rest.addrs(), ",")); status != 0 {
		t.Fatalf("manager remove: exit status %d: %s", status, stderr)
	}
	if status := gone.exit(t); status != statusFailed {
		t.Errorf("the removed manager: exit status %d, want %d", status, statusFailed)
	}
	if output := gone.output(t); !strings.Contains(output, "removed from its group") || !strings.Contains(output, "empty data directory") {
		t.Errorf("the removed manager's log lacks the reason and the remedy:\n%s", proc.Tail(gone.log))
	}
	rest.waitForManagers(t)
	rest.waitForAssignment(t, ns, "ann", "bob")

	gone.start(t) // must be refused
	if status := gone.exit(t); status != statusFailed {
		t.Errorf("restarted: exit status %d, want %d", status, statusFailed)
	}
	rest.waitForManagers(t)
}

// TestInterruptedJoin: a manager that ended between AddMember and its start joins when it
// is started again.
func TestInterruptedJoin(t *testing.T) {
	t.Parallel()
	g := startLone(t, "--peer-listen="+freeAddr(t))
	peer := freeAddr(t)
	if err := g.query(t, func(a admin) error {
		_, err := a.AddMember(a.ctx, &leaseholdv1.AddMemberRequest{Version: a.version, Name: "m2", PeerUrl: "http://" + peer})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	second := newManager(t, "m2", "--peer-listen="+peer, "--join="+g.managers[0].addr)
	second.start(t)
	g.managers = append(g.managers, second)
	g.waitForManagers(t)
	// A group of two needs both for a quorum.
	second.signal(t, syscall.SIGSTOP)
	(&group{managers: g.managers[:1]}).waitForNoLeader(t)
	second.signal(t, syscall.SIGCONT)
	g.leader(t)
}
