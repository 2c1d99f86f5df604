//go:build unix

package e2e

import (
	"strings"
	"syscall"
	"testing"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// TestGrowAndShrink: a fourth manager joins a group of three and takes part; a
// member that is removed says why it ends. Nobody's leases are touched.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	const ns = "members"
	g := startThree(t)
	g.createNamespace(t, ns, keptLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.settled(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	g.whole(t)

	fourth := newManager(t, "m4", "--peer-listen="+freeAddr(t), "--join="+g.managers[0].addr)
	fourth.start(t)
	g.managers = append(g.managers, fourth)
	g.whole(t)
	fourth.kill() // and once more, on what it has
	fourth.start(t)
	g.whole(t)

	gone := g.leader(t) // the worst one to lose
	rest := g.without(gone)
	if status, _, stderr := run(t, "manager", "remove", gone.name, "--managers="+strings.Join(rest.addrs(), ",")); status != 0 {
		t.Fatalf("member remove ended with status %d: %s", status, stderr)
	}
	if status := gone.exit(t); status != exitTrouble {
		t.Errorf("the removed manager ended with status %d, want %d", status, exitTrouble)
	}
	if said := gone.said(t); !strings.Contains(said, "removed from its group") || !strings.Contains(said, "empty data directory") {
		t.Errorf("the removed manager does not say what happened and what to do:\n%s", proc.Tail(gone.log))
	}
	rest.whole(t)
	rest.settled(t, ns, "ann", "bob")

	gone.start(t) // it is not let in by mistake
	if status := gone.exit(t); status != exitTrouble {
		t.Errorf("started again it ended with status %d, want %d", status, exitTrouble)
	}
	rest.whole(t)
}

// TestInterruptedJoin: a manager that died between asking for a place and taking
// it gets it when it is started again.
func TestInterruptedJoin(t *testing.T) {
	t.Parallel()
	g := startLone(t, "--peer-listen="+freeAddr(t))
	peer := freeAddr(t)
	if err := g.ask(t, func(a admin) error {
		_, err := a.AddMember(a.ctx, &leaseholdv1.AddMemberRequest{Version: a.version, Name: "m2", PeerUrl: "http://" + peer})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	second := newManager(t, "m2", "--peer-listen="+peer, "--join="+g.managers[0].addr)
	second.start(t)
	g.managers = append(g.managers, second)
	g.whole(t)
	// A group of two needs both: the one that is left must not go on alone.
	second.signal(t, syscall.SIGSTOP)
	(&group{managers: g.managers[:1]}).leaderless(t)
	second.signal(t, syscall.SIGCONT)
	g.leader(t)
}
