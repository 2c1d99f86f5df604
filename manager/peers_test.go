package manager_test

import (
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
)

// peers is the network and configuration of a diskless group.
type peers struct {
	net     flease.Memory
	members []string
	odd     map[string]func(*manager.Peers) // managers with another configuration
}

func (p *peers) config(name string) *manager.Peers {
	cfg := &manager.Peers{Transport: &p.net, Key: secret.New("the key of all of them")}
	for _, name := range p.members {
		cfg.Members = append(cfg.Members, manager.Peer{Manager: addr(name)})
	}
	if change := p.odd[name]; change != nil {
		change(cfg)
	}
	return cfg
}

// fleaseID returns the Flease ID of a manager.
func fleaseID(name string) flease.ID {
	h := fnv.New32a()
	_, _ = h.Write([]byte(addr(name)))
	return flease.ID(h.Sum32())
}

func (p *peers) each(name string, do func(from, to flease.ID)) {
	for _, other := range p.members {
		if other != name {
			do(fleaseID(name), fleaseID(other))
			do(fleaseID(other), fleaseID(name))
		}
	}
}

func (p *peers) cut(name string)  { p.each(name, p.net.Cut) }
func (p *peers) mend(name string) { p.each(name, p.net.Mend) }

// withoutDisk runs a test with a diskless group of three managers, of which one leads.
func withoutDisk(t *testing.T, test func(t *testing.T, c *cluster, leader string)) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.peers = &peers{members: []string{"m1", "m2", "m3"}}
		for _, name := range c.peers.members {
			c.start(name)
		}
		test(t, c, c.leads(30*time.Second))
	})
}

// leads waits until a manager leads and has the namespaces, and all live managers have that leader. It returns
// its name.
func (c *cluster) leads(within time.Duration) string {
	c.t.Helper()
	leader := ""
	eventuallyEvery(c.t, 100*time.Millisecond, within, "a manager leads", func() bool {
		leader = ""
		for name := range c.managers {
			s := c.status(name)
			if s.GetLeader() == "" || s.GetProblem() != "" || leader != "" && s.GetLeader() != leader {
				return false
			}
			leader = s.GetLeader()
		}
		return leader != ""
	})
	return strings.TrimSuffix(leader, ":7400")
}

func (c *cluster) standby(leader string) string {
	for _, name := range c.peers.members {
		if name != leader && c.managers[name] != nil {
			return name
		}
	}
	c.t.Fatal("no standby is left")
	return ""
}

// When the leader of a diskless group fails no lease is lost, generations do not change, and lookups
// report no loss.
func TestWithoutDiskFailoverKeepsLeases(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(c.standby(leader), pool()) // it is forwarded
		a, b := c.join("a"), c.join("b")
		l := c.open()
		eventually(t, 20*time.Second, "all keys are owned", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
		var lost atomic.Int64
		listening := make(chan struct{})
		go func() {
			defer close(listening)
			for _, err := range l.LossesSince(t.Context(), l.LSN()) {
				if err != nil {
					break
				}
				lost.Add(1)
			}
		}()
		for round := range 3 {
			before := [][]leasehold.Lease{a.Leases(), b.Leases()}
			term := c.status(leader).GetTerm()
			c.crash(leader)
			next, held := "", true
			eventually(t, 10*time.Second, "another manager leads, and both owners have sent a request to it", func() bool {
				held = held && complete(a, b)
				for name := range c.managers {
					if s := c.status(name); s.GetLeader() == addr(name) && members(t, c, name) == 2 {
						next = name
					}
				}
				return next != ""
			})
			if now := c.status(next).GetTerm(); now <= term {
				t.Errorf("term %d is followed by %d, want a higher one", term, now)
			}
			time.Sleep(15 * time.Second) // longer than any lease from before
			if after := [][]leasehold.Lease{a.Leases(), b.Leases()}; !held || cmp.Diff(before, after) != "" {
				t.Fatalf("round %d: leases were lost (%v) or have changed:\n%s", round, !held, cmp.Diff(before, after))
			}
			if n := lost.Load(); n > 0 {
				t.Fatalf("round %d: the lookup reported %d losses", round, n)
			}
			// The failed manager restarts without state.
			c.peers.mend(leader)
			c.start(leader)
			leader = c.leads(30 * time.Second)
			if leader != next {
				t.Fatalf("round %d: %s leads, and %s did", round, leader, next)
			}
		}
		// New grants have higher generations than all before.
		var newest leasehold.Generation
		for _, held := range append(a.Leases(), b.Leases()...) {
			newest = max(newest, held.Generation)
		}
		c.leave(b)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		rises := false
		for _, held := range a.Leases() {
			rises = rises || held.Generation > newest
		}
		if !rises {
			t.Errorf("the leases of b were granted again with generations below %d", newest)
		}
	})
}

// The namespaces survive a rolling restart of all managers, and closed managers hand over at once.
func TestWithoutDiskRollingRestart(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		a := c.join("a")
		eventually(t, 20*time.Second, "all keys are owned", func() bool { return complete(a) })
		for _, name := range c.peers.members {
			begun := time.Now()
			c.stop(name)
			c.leads(5 * time.Second)
			if took := time.Since(begun); took > time.Second {
				t.Errorf("after %s was closed another led after %v", name, took)
			}
			m := c.start(name)
			eventually(t, 10*time.Second, name+" has the leader", func() bool { return c.status(name).GetLeader() != "" })
			if code, _ := get(m, "/readyz"); code == http.StatusOK {
				t.Error("a manager that does not vote yet is ready")
			}
			eventually(t, 5*time.Second, name+" is ready", func() bool { code, _ := get(m, "/readyz"); return code == http.StatusOK })
		}
		if !complete(a) || members(t, c, "m1") != 1 {
			t.Error("a has lost leases")
		}
		answer, err := c.admin("m1").ListNamespaces(t.Context(), &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
		if err != nil || len(answer.GetNamespaces()) != 1 {
			t.Errorf("the namespaces are %v: %v", answer, err)
		}
	})
}

// A minority does not lead, and an isolated leader has ceased to lead before another leads.
func TestWithoutDiskMinority(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.peers.cut(leader)
		eventually(t, 5*time.Second, "another leads", func() bool {
			leading := 0
			for name := range c.managers {
				if s := c.status(name); s.GetLeader() == addr(name) && s.GetLedFor() > 0 {
					leading++
				}
			}
			if leading > 1 {
				t.Fatal("two managers lead")
			}
			s := c.status(c.standby(leader))
			return s.GetLeader() != "" && s.GetLeader() != addr(leader)
		})
	})
}

// A standby detects the loss of the leader without messages.
func TestWithoutDiskNotReadyWithoutLeader(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		idle := c.standby(leader)
		m := c.managers[idle].Manager
		eventually(t, 5*time.Second, "it is ready", func() bool { code, _ := get(m, "/readyz"); return code == http.StatusOK })
		for _, name := range c.peers.members {
			if name != idle {
				c.crash(name)
			}
		}
		time.Sleep(5 * time.Second)
		if code, body := get(m, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "no manager leads") {
			t.Errorf("%d: %s", code, body)
		}
	})
}

// A diskless group rejects leases longer than its bound, and changes of its members.
func TestWithoutDiskRefusesLongLeases(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		long := pool()
		long.Timing = &leaseholdv1.Timing{Lease: int64(time.Minute)}
		_, err := c.admin(leader).CreateNamespace(t.Context(), &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: long})
		if err := wire.ToError(err); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), "use a shorter lease, or start all managers with a longer --longest-lease") {
			t.Errorf("a lease of a minute: %v", err)
		}
		_, err = c.admin(leader).ListMembers(t.Context(), &leaseholdv1.ListMembersRequest{Version: wire.Version})
		if err := wire.ToError(err); !strings.Contains(err.Error(), "--peers") {
			t.Errorf("members: %v", err)
		}
	})
}
