//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A manager is a manager process, which may be started again.
type manager struct {
	*process // the current one
	name     string
	addr     string
	dataDir  string
	args     []string
	log      string
	diskless bool
}

func (m *manager) start(t *testing.T) {
	t.Helper()
	m.process = launch{program: leaseholdProgram, args: m.args, log: m.log, dir: filepath.Dir(m.log)}.start(t)
}

// terminate sends SIGTERM, and requires exit status 0.
func (m *manager) terminate(t *testing.T) {
	t.Helper()
	m.signal(t, syscall.SIGTERM)
	if status := m.exit(t); status != 0 {
		t.Fatalf("manager %s: exit status %d", m.name, status)
	}
}

// A group is the managers of a test.
type group struct {
	managers []*manager
}

// leaderTTL is the default leader TTL. Tests that kill a leader wait until it expires.
const leaderTTL = 2 * time.Second

// newManager returns a manager with a data directory. It does not start it.
func newManager(t *testing.T, name string, flags ...string) *manager {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	m := &manager{name: name, addr: addr, dataDir: filepath.Join(dir, "data"), log: filepath.Join(dir, name+".log")}
	m.args = append([]string{"manager", "run", "--listen=" + addr, "--http=", "--name=" + name, "--data-dir=" + m.dataDir}, flags...)
	return m
}

// startLone starts a single manager.
func startLone(t *testing.T, flags ...string) *group {
	t.Helper()
	m := newManager(t, "m1", flags...)
	m.start(t)
	g := &group{managers: []*manager{m}}
	g.leader(t)
	return g
}

// startThree starts a group of three with an embedded store.
func startThree(t *testing.T, flags ...string) *group {
	t.Helper()
	var urls []string
	names := []string{"m1", "m2", "m3"}
	for _, name := range names {
		urls = append(urls, name+"=http://"+freeAddr(t))
	}
	g := &group{}
	for _, name := range names {
		m := newManager(t, name, append([]string{"--members=" + strings.Join(urls, ",")}, flags...)...)
		m.start(t)
		g.managers = append(g.managers, m)
	}
	g.leader(t)
	return g
}

// addrs returns the addresses of all managers, running or not.
func (g *group) addrs() []string {
	var out []string
	for _, m := range g.managers {
		out = append(out, m.addr)
	}
	return out
}

// leader waits until a manager reports that it leads.
func (g *group) leader(t *testing.T) *manager {
	t.Helper()
	var found *manager
	eventually(t, "a leader", func() (err error) {
		found, err = g.findLeader(t)
		return err
	})
	return found
}

func (g *group) findLeader(t *testing.T) (*manager, error) {
	failed := errors.New("no manager is alive")
	for _, m := range g.managers {
		if !m.Alive() {
			continue
		}
		status, err := getStatus(t, m.addr)
		if err == nil && status.GetLeader() == m.addr {
			return m, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s reports leader %q: %w", m.name, status.GetLeader(), err))
	}
	return nil, failed
}

// without returns the group without one of its managers.
func (g *group) without(gone *manager) *group {
	return &group{managers: slices.DeleteFunc(slices.Clone(g.managers), func(m *manager) bool { return m == gone })}
}

// createNamespace creates a namespace with a lease time. Owners renew at least once a
// second, so that faults have an effect soon.
func (g *group) createNamespace(t *testing.T, name string, lease time.Duration) {
	t.Helper()
	eventually(t, "create namespace", func() error {
		return g.query(t, func(a admin) error {
			_, err := a.CreateNamespace(a.ctx, &leaseholdv1.CreateNamespaceRequest{
				Version: a.version, Namespace: &leaseholdv1.NamespaceConfig{
					Name: name, Policy: policy.Name(), VirtualNodes: uint32(policy.VirtualNodes),
					Timing: &leaseholdv1.Timing{Lease: int64(lease), Renew: int64(min(lease/4, time.Second)), Drift: drift},
				},
			})
			return err
		})
	})
}
