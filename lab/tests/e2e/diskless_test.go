//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// startDiskless starts a group of three without disks. Because it is new, its first leader
// waits for one longest lease.
func startDiskless(t *testing.T, longest time.Duration) *group {
	t.Helper()
	g := &group{}
	var addrs []string
	for _, name := range []string{"m1", "m2", "m3"} {
		dir, addr := t.TempDir(), freeAddr(t)
		addrs = append(addrs, addr)
		g.managers = append(g.managers, &manager{name: name, addr: addr, log: filepath.Join(dir, name+".log"), diskless: true})
	}
	for _, m := range g.managers {
		m.args = []string{
			"manager", "run", "--store=flease", "--listen=" + m.addr, "--http=", "--peers=" + strings.Join(addrs, ","),
			"--ttl=" + leaderTTL.String(), "--longest-lease=" + regrant(longest).String(),
		}
		m.start(t)
	}
	g.leader(t)
	return g
}

// wantNoFiles requires that the managers have written nothing but their logs.
func (g *group) wantNoFiles(t *testing.T) {
	t.Helper()
	for _, m := range g.managers {
		files, err := os.ReadDir(filepath.Dir(m.log))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() != filepath.Base(m.log) {
				t.Errorf("%s wrote %s", m.name, f.Name())
			}
		}
	}
}

// ready returns an error unless the manager's health service reports SERVING.
func (m *manager) ready(t *testing.T) error {
	conn, err := grpc.NewClient("passthrough:///"+m.addr,
		append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // no call is in progress
	response, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err == nil && response.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("%s is %v", m.name, response.GetStatus())
	}
	return err
}

// TestDisklessLeaderKilled: the table of a killed leader is lost with it. The next leader
// rebuilds it from the owners' claims, and no lease is lost.
func TestDisklessLeaderKilled(t *testing.T) {
	t.Parallel()
	g := startDiskless(t, keptLease)
	leader := g.leader(t)
	took := failover(t, g, leader, leader.kill)
	t.Logf("renewals resumed %v after the leader was killed; its lease is %v", took, leaderTTL)
	g.wantNoFiles(t)
}

// TestDisklessLeaderStopped: a leader that is stopped for longer than its lease is
// replaced, and follows the new leader when it is continued.
func TestDisklessLeaderStopped(t *testing.T) {
	t.Parallel()
	g := startDiskless(t, keptLease)
	leader := g.leader(t)
	took := failover(t, g, leader, func() { leader.signal(t, syscall.SIGSTOP) })
	t.Logf("renewals resumed %v after the leader was stopped; its lease is %v", took, leaderTTL)
	leader.signal(t, syscall.SIGCONT)
	eventually(t, "the old leader follows the new one", func() error {
		status, err := getStatus(t, leader.addr)
		if err == nil && (status.GetLeader() == "" || status.GetLeader() == leader.addr) {
			err = errNotYet
		}
		return err
	})
}

// TestDisklessRollingKill: all managers are killed, one after the other, each when the
// previous one is ready again. All namespaces and leases remain.
func TestDisklessRollingKill(t *testing.T) {
	t.Parallel()
	g := startDiskless(t, keptLease)
	rolling(t, g, func(m *manager) { m.kill() })
	g.wantNoFiles(t)
}

// TestDisklessOwnerAndLeaderKilled: if an owner and the leader are killed, no process has
// the owner's leases. Its ranges are granted again when all leases have expired, and exactly
// these ranges are reported as lost.
func TestDisklessOwnerAndLeaderKilled(t *testing.T) {
	t.Parallel()
	const ns = "both"
	const lease = 6 * time.Second // longer than a failover
	g := startDiskless(t, lease)
	g.createNamespace(t, ns, lease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	victim := g.joinProcess(t, ns, "victim")
	g.waitForAssignment(t, ns, "ann", "bob", "victim")
	g.steady(t, ns, ann, bob)
	exclusive(t, ann, bob)
	calls := g.open(t, ns, eventTimeout)
	had := g.leasesOf(t, ns, "victim")

	victim.kill()
	g.leader(t).kill()
	within(t, 4*leaderTTL+2*regrant(lease)+slack, "the others own its keys", func() error { return covered(calls, had, "victim") })
	g.waitForAssignment(t, ns, "ann", "bob")
	eventually(t, "the lookup reports all losses", func() error {
		return wantAllLost(calls, had)
	})
}

// wantAllLost returns an error unless the reported losses are exactly the given leases.
func wantAllLost(c *caller, had []leasehold.Lease) error {
	losses := c.reportedLosses()
	for _, l := range had {
		for _, key := range []leasehold.Key{l.Range.Start, l.Range.Last()} {
			if !lossAt(losses, key) {
				return fmt.Errorf("the loss of %v was not reported", key)
			}
		}
	}
	for _, loss := range losses {
		for _, key := range []leasehold.Key{loss.Range.Start, loss.Range.Last()} {
			if !heldAt(had, key) {
				return fmt.Errorf("%v was reported as lost, but another owner holds it", loss)
			}
		}
	}
	return nil
}

func lossAt(losses []leasehold.Loss, key leasehold.Key) bool {
	for _, loss := range losses {
		if loss.Range.Contains(key) {
			return true
		}
	}
	return false
}

func heldAt(had []leasehold.Lease, key leasehold.Key) bool {
	for _, l := range had {
		if l.Range.Contains(key) {
			return true
		}
	}
	return false
}
