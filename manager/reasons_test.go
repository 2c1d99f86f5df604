package manager_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
)

func otherKey(p *manager.Peers)   { p.Key = secret.New("another one, by mistake") }
func otherTimes(p *manager.Peers) { p.Longest = time.Minute }
func (p *peers) sameConfig()      { p.odd = nil }
func (p *peers) configure(name string, what func(*manager.Peers)) {
	p.odd = map[string]func(*manager.Peers){name: what}
}

// wants checks the status code of an HTTP request, and that the body contains all words.
func wants(t *testing.T, m *manager.Manager, path string, code int, words ...string) {
	t.Helper()
	have, body := get(m, path)
	for _, w := range words {
		if have != code || !strings.Contains(body, w) {
			t.Errorf("%s answers %d, want %d with %q: %s", path, have, code, w, body)
		}
	}
}

// A new group does not start with a manager of another configuration, which cannot vote, and all
// managers report the reason.
func TestWithoutDiskMismatchedConfig(t *testing.T) {
	for want, odd := range map[string]func(*manager.Peers){"--peer-key-file": otherKey, "--longest-lease": otherTimes} {
		inBubble(t, func(t *testing.T, c *cluster) {
			c.peers = &peers{members: []string{"m1", "m2", "m3"}}
			c.peers.configure("m3", odd)
			for _, name := range c.peers.members {
				c.start(name)
			}
			time.Sleep(30 * time.Second)
			wants(t, c.managers["m3"].Manager, "/readyz", http.StatusServiceUnavailable, "this manager does not take part", want)
			if s := c.status("m3"); len(s.GetWarnings()) > 0 || !strings.Contains(s.GetProblem(), "does not take part") || !strings.Contains(s.GetProblem(), want) {
				t.Errorf("status of the mismatched manager: %s; %q", s.GetProblem(), s.GetWarnings())
			}
			s := c.status("m1")
			if !strings.Contains(s.GetProblem(), "m3:7400 (") || !strings.Contains(s.GetProblem(), "its managers, times or key differ") {
				t.Errorf("problem in the leader's status: %s", s.GetProblem())
			}
			if len(s.GetWarnings()) != 1 || !strings.Contains(s.GetWarnings()[0], "m3:7400 does not vote") || !strings.Contains(s.GetWarnings()[0], want) {
				t.Errorf("warnings of the leader: %q", s.GetWarnings())
			}
			leader := strings.TrimSuffix(s.GetLeader(), ":7400")
			wants(t, c.managers[leader].Manager, "/readyz", http.StatusServiceUnavailable, "m3:7400 (")
			wants(t, c.managers[leader].Manager, "/restartz", http.StatusServiceUnavailable, "m3:7400 (")
		})
	}
}

// After one manager is restarted with another key the others stay ready, but none of them may be stopped.
func TestWithoutDiskRestartz(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		time.Sleep(10 * time.Second)
		idle := c.standby(leader)
		for _, m := range c.managers {
			wants(t, m.Manager, "/readyz", http.StatusOK, "ok, led by "+addr(leader)+"\n")
			wants(t, m.Manager, "/restartz", http.StatusOK, "ok")
		}
		if w := c.status(idle).GetWarnings(); w != nil {
			t.Errorf("warnings without a fault: %q", w)
		}
		c.stop(idle)
		c.peers.configure(idle, otherKey)
		c.start(idle)
		time.Sleep(20 * time.Second)
		for name, m := range c.managers {
			if name != idle {
				wants(t, m.Manager, "/readyz", http.StatusOK, "ok, led by ", addr(idle)+" does not vote", "--peer-key-file")
			}
			wants(t, m.Manager, "/restartz", http.StatusServiceUnavailable, "do not stop another", "--peer-key-file")
		}
		wants(t, c.managers[idle].Manager, "/readyz", http.StatusServiceUnavailable, "--peer-key-file")
		if w := c.status(leader).GetWarnings(); len(w) != 1 || !strings.Contains(w[0], addr(idle)) {
			t.Errorf("warnings of the leader: %q", w)
		}
		c.stop(idle)
		c.peers.sameConfig()
		c.start(idle)
		time.Sleep(time.Second)
		wants(t, c.managers[leader].Manager, "/restartz", http.StatusServiceUnavailable, addr(idle)+" does not vote: it has just started")
		time.Sleep(9 * time.Second)
		for _, m := range c.managers {
			wants(t, m.Manager, "/restartz", http.StatusOK, "ok")
		}
	})
}

// The status of a new group counts down the time until leases may be granted.
func TestWithoutDiskCountsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.peers = &peers{members: []string{"m1", "m2", "m3"}}
		for _, name := range c.peers.members {
			c.start(name)
		}
		var left []time.Duration
		for range 100 {
			time.Sleep(200 * time.Millisecond)
			_, text, _ := strings.Cut(c.status("m1").GetProblem(), "the leader waits ")
			text, _, found := strings.Cut(text, " until all leases")
			if d, err := time.ParseDuration(text); found && err == nil {
				left = append(left, d)
			}
		}
		if n := len(left); n < 50 || left[0] < 11*time.Second || left[n-1] > time.Second {
			t.Errorf("the countdown is %v", left)
		}
	})
}

// After a failover the history has no losses of kept leases, and it shows the owner of a key, although
// the grant is not in the new leader's log.
func TestWithoutDiskAfterFailover(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		a := c.join("a")
		eventually(t, 20*time.Second, "all keys are owned", func() bool { return complete(a) })
		history := func(name string) *leaseholdv1.ListHistoryResponse {
			t.Helper()
			h, err := c.admin(name).ListHistory(t.Context(), &leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: "pool", Key: 7})
			if err != nil {
				t.Fatal(wire.ToError(err))
			}
			return h
		}
		if h := history(leader); len(h.GetEntries()) == 0 || h.GetBefore() != nil {
			t.Errorf("before: %v", h)
		}
		c.crash(leader)
		leader = c.leads(10 * time.Second)
		unheard := false
		eventually(t, 10*time.Second, "a has sent a request", func() bool {
			n := c.status(leader).GetNamespaces()
			if len(n) == 0 || !n[0].GetReady() {
				return false
			}
			unheard = unheard || n[0].GetOwners() == 0 && strings.Contains(n[0].GetProblem(), "have been silent since this leader took over: 1")
			return n[0].GetOwners() == 1 && n[0].GetProblem() == ""
		})
		if !unheard {
			t.Error("the status did not report a silent owner")
		}
		// The log begins with the leadership, and is marked as truncated.
		changes, err := c.admin(leader).ListChanges(t.Context(), &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: "pool"})
		if err != nil || !changes.GetTruncated() || changes.GetBegun() == 0 || history(leader).GetBegun() != changes.GetBegun() {
			t.Errorf("%v: %v", changes, err)
		}
		found, err := c.admin(leader).LookupKey(t.Context(), &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: "pool", Key: 7})
		if err != nil || found.GetRange().GetOwner() != "a" || found.GetBegun() == 0 || found.GetRange().GetLost() > found.GetBegun() {
			t.Errorf("%v: %v", found, err)
		}
		h := history(c.standby(leader))
		if b := h.GetBefore(); len(h.GetEntries()) != 0 || !h.GetTruncated() || b.GetOwner() != "a" || b.GetLease().GetGeneration() == 0 {
			t.Errorf("after: %v", h)
		}
	})
}

// joinMortal adds an owner, waits until it holds all keys, and returns a function that crashes it.
func (c *cluster) joinMortal(name string) (die func()) {
	c.t.Helper()
	o, die := c.joinSevered(name)
	eventually(c.t, 20*time.Second, "all keys are owned", func() bool { return complete(o) })
	return die
}

// A lookup that is opened during the census of a new leader receives the reason and the remaining time,
// and waits until its context ends.
func TestWithoutDiskLookupDuringCensus(t *testing.T) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		die := c.joinMortal("a")
		die()
		c.crash(leader)
		next := c.leads(10 * time.Second)
		cfg := lookup.Config{Namespace: "pool", Managers: c.names(), Credentials: insecure.NewCredentials(), DialOptions: c.dialOptions()}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := lookup.Open(ctx, cfg)
		if want := "it leads, and does not have the table of pool yet: the leader collects the claims of its owners"; leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(err.Error(), addr(next)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		_, err = c.admin(c.standby(next)).LookupKey(t.Context(), &leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: "pool", Key: 7})
		if err := wire.ToError(err); err == nil || !strings.Contains(err.Error(), "collects the claims") || strings.Contains(err.Error(), "does not reply") {
			t.Errorf("error of a request that a standby forwards: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		l, err := lookup.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close(context.Background())
	})
}
