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

// TestRollingRestart: all managers are restarted, one by one, as for an upgrade.
// A leader that is asked to stop hands over, so that nobody waits for its time
// to run out.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	const ttl = 30 * time.Second // waiting it out would fail the test
	g := startThree(t, "--ttl="+ttl.String())
	rolling(t, g, func(m *manager) {
		led := g.leader(t) == m
		began := time.Now()
		m.signal(t, syscall.SIGTERM)
		if led {
			within(t, ttl/2, "another leads", func() error { _, err := g.without(m).findLeader(t); return err })
			t.Logf("%s led; another did %v after it was asked to stop", m.name, time.Since(began))
		}
		if status := m.exit(t); status != 0 {
			t.Errorf("manager %s ended with status %d", m.name, status)
		}
		t.Logf("%s was gone after %v", m.name, time.Since(began))
	})
}

// TestRollingKill: the same with kill -9.
func TestRollingKill(t *testing.T) {
	t.Parallel()
	g := startThree(t, "--ttl="+leaderTTL.String())
	rolling(t, g, func(m *manager) { m.kill() })
}

// rolling ends and restarts all managers, the leader first, while owners and a
// caller do not notice.
func rolling(t *testing.T, g *group, end func(*manager)) {
	t.Helper()
	const ns = "rolling"
	g.createNamespace(t, ns, keptLease)
	names := []string{"ann", "bob"}
	ann, bob := g.join(t, ns, names[0]), g.join(t, ns, names[1])
	g.settled(t, ns, names...)
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, keptLease)
	before := calls.places()
	first := g.leader(t)
	for _, m := range append([]*manager{first}, g.without(first).managers...) {
		end(m)
		g.leader(t)
		m.start(t)
		g.whole(t)
		g.settled(t, ns, names...)
	}
	if diff := cmp.Diff(before, calls.places()); diff != "" {
		t.Errorf("the lookup finds other servers (-before +after):\n%s", diff)
	}
	eventually(t, "the lookup knows that its table is complete", func() error { return calls.younger(2 * time.Second) })
	if told := calls.told(); len(told) > 0 {
		t.Errorf("the lookup reported losses: %v", told)
	}
}

// whole waits until every manager knows who leads and all stores answer, or where
// there are none all are ready, so that the next one may go.
func (g *group) whole(t *testing.T) {
	t.Helper()
	eventually(t, "all managers are there", func() error {
		for _, m := range g.managers {
			status, err := getStatus(t, m.addr)
			if err == nil && status.GetLeader() == "" {
				err = errors.New("it knows of no leader")
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

// healthy reports what keeps the group from having n members, all of which
// answer and vote.
func (g *group) healthy(t *testing.T, n int) error {
	return g.ask(t, func(a admin) error {
		answer, err := a.ListMembers(a.ctx, &leaseholdv1.ListMembersRequest{Version: a.version})
		if err != nil {
			return err
		}
		if len(answer.GetMembers()) != n {
			return fmt.Errorf("%d members, want %d", len(answer.GetMembers()), n)
		}
		for _, m := range answer.GetMembers() {
			if !m.GetHealthy() || m.GetLearner() {
				return fmt.Errorf("member %q: healthy %t, learner %t", m.GetName(), m.GetHealthy(), m.GetLearner())
			}
		}
		return nil
	})
}
