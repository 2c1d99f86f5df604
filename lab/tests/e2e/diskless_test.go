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

// startDiskless starts a group of three that keeps nothing on disk. It waits for as
// long as the longest lease lasts before it leads, because it is new.
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

// leftNothing wants a manager's directory to have nothing but its log.
func (g *group) leftNothing(t *testing.T) {
	t.Helper()
	for _, m := range g.managers {
		files, err := os.ReadDir(filepath.Dir(m.log))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() != filepath.Base(m.log) {
				t.Errorf("%s has written %s", m.name, f.Name())
			}
		}
	}
}

// ready says what keeps a manager from being ready, by its own word.
func (m *manager) ready(t *testing.T) error {
	conn, err := grpc.NewClient("passthrough:///"+m.addr,
		append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	answer, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err == nil && answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("%s is %v", m.name, answer.GetStatus())
	}
	return err
}

// TestDisklessLeaderKilled: a leader that dies without a word takes the table with
// it. The next one has it from the owners, and nobody loses anything.
func TestDisklessLeaderKilled(t *testing.T) {
	t.Parallel()
	g := startDiskless(t, keptLease)
	leader := g.leader(t)
	took := failover(t, g, leader, leader.kill)
	t.Logf("renewals resumed %v after the leader was killed; its lease is %v", took, leaderTTL)
	g.leftNothing(t)
}

// TestDisklessLeaderStopped: a leader that stands still for longer than its lease is
// replaced, and when it goes on it finds out that it leads no more.
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
// one before is ready again. The namespaces outlive that, and so does every lease.
func TestDisklessRollingKill(t *testing.T) {
	t.Parallel()
	g := startDiskless(t, keptLease)
	rolling(t, g, func(m *manager) { m.kill() })
	g.leftNothing(t)
}

// TestDisklessOwnerAndLeaderKilled: what an owner had that dies with the leader is
// known to nobody. It goes to the others when nobody can have it any more, and is
// reported as lost, as a whole and nothing else.
func TestDisklessOwnerAndLeaderKilled(t *testing.T) {
	t.Parallel()
	const ns = "both"
	const lease = 6 * time.Second // it outlasts a failover
	g := startDiskless(t, lease)
	g.createNamespace(t, ns, lease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	victim := g.joinProcess(t, ns, "victim")
	g.settled(t, ns, "ann", "bob", "victim")
	g.steady(t, ns, ann, bob)
	exclusive(t, ann, bob)
	calls := g.open(t, ns, patience)
	had := g.leasesOf(t, ns, "victim")

	victim.kill()
	g.leader(t).kill()
	within(t, 4*leaderTTL+2*regrant(lease)+slack, "the others have its keys", func() error { return covered(calls, had, "victim") })
	g.settled(t, ns, "ann", "bob")
	eventually(t, "the lookup is told of all that was lost", func() error {
		return lostAltogether(calls, had)
	})
}

// lostAltogether says how what a lookup was told of differs from leases that were lost.
func lostAltogether(c *caller, had []leasehold.Lease) error {
	told := c.told()
	for _, l := range had {
		for _, key := range []leasehold.Key{l.Range.Start, l.Range.Last()} {
			if !lossAt(told, key) {
				return fmt.Errorf("nobody was told that %v is lost", key)
			}
		}
	}
	for _, loss := range told {
		for _, key := range []leasehold.Key{loss.Range.Start, loss.Range.Last()} {
			if !heldAt(had, key) {
				return fmt.Errorf("%v was reported as lost, and was another's", loss)
			}
		}
	}
	return nil
}

func lossAt(told []leasehold.Loss, key leasehold.Key) bool {
	for _, loss := range told {
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
