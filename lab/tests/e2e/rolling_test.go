//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// TestRollingRestart: all managers are restarted one by one, as for an upgrade. A leader
// that is terminated hands over its leadership, so that its TTL need not expire.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second // waiting until it expires would fail the test
	g := startThree(t, "--ttl="+ttl.String())
	rolling(t, g, func(m *manager) {
		led := g.leader(t) == m
		began := time.Now()
		m.signal(t, syscall.SIGTERM)
		if led {
			within(t, ttl/2, "another manager leads", func() error { _, err := g.without(m).findLeader(t); return err })
			t.Logf("%s led; another manager led %v after SIGTERM", m.name, time.Since(began))
		}
		if status := m.exit(t); status != 0 {
			t.Errorf("manager %s: exit status %d", m.name, status)
		}
		t.Logf("%s exited after %v", m.name, time.Since(began))
	})
}

// TestRollingKill: the same with kill -9.
func TestRollingKill(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl="+leaderTTL.String())
	rolling(t, g, func(m *manager) { m.kill() })
}

// rolling ends and restarts all managers, the leader first. Owners keep their leases and a
// lookup its table.
func rolling(t *testing.T, g *group, end func(*manager)) {
	t.Helper()
	const ns = "rolling"
	g.createNamespace(t, ns, keptLease)
	names := []string{"ann", "bob"}
	ann, bob := g.join(t, ns, names[0]), g.join(t, ns, names[1])
	g.waitForAssignment(t, ns, names...)
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, keptLease)
	before := calls.places()
	first := g.leader(t)
	for _, m := range append([]*manager{first}, g.without(first).managers...) {
		end(m)
		g.leader(t)
		m.start(t)
		g.waitForManagers(t)
		g.waitForAssignment(t, ns, names...)
	}
	if diff := cmp.Diff(before, calls.places()); diff != "" {
		t.Errorf("the lookup's table changed (-before +after):\n%s", diff)
	}
	eventually(t, "the lookup's table is confirmed", func() error { return calls.maxAge(2 * time.Second) })
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// waitForManagers waits until every manager has a leader and all stores respond, or, without
// stores, all are ready, so that the next one may be stopped.
func (g *group) waitForManagers(t *testing.T) {
	t.Helper()
	eventually(t, "all managers are ready", func() error {
		for _, m := range g.managers {
			status, err := getStatus(t, m.addr)
			if err == nil && status.GetLeader() == "" {
				err = errors.New("no leader")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if !m.diskless {
				continue
			}
			if err := m.ready(t); err != nil {
				return err
			}
		}
		if g.managers[0].diskless {
			return nil
		}
		return g.healthy(t, len(g.managers))
	})
}

// healthy returns an error unless the group has n members that all respond and vote.
func (g *group) healthy(t *testing.T, n int) error {
	return g.query(t, func(a admin) error {
		response, err := a.ListMembers(a.ctx, &leaseholdv1.ListMembersRequest{Version: a.version})
		if err != nil {
			return err
		}
		if len(response.GetMembers()) != n {
			return fmt.Errorf("%d members, want %d", len(response.GetMembers()), n)
		}
		for _, m := range response.GetMembers() {
			if !m.GetHealthy() || m.GetLearner() {
				return fmt.Errorf("member %q: healthy %t, learner %t", m.GetName(), m.GetHealthy(), m.GetLearner())
			}
		}
		return nil
	})
}
