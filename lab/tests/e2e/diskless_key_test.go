//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeKey writes a key of managers, and returns the flag that names it.
func writeKey(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peers.key")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--peer-key-file=" + path
}

// probe asks a manager how it is, by HTTP, and wants an answer that says something.
func probe(t *testing.T, url string, code int, words ...string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	for _, w := range words {
		if err == nil && (answer.StatusCode != code || !strings.Contains(string(body), w)) {
			err = fmt.Errorf("%s answers %d, want %d with %q: %s", url, answer.StatusCode, code, w, body)
		}
	}
	return err
}

// TestDisklessOtherKey: a manager that is restarted with another key has no vote. It is
// not ready, the others go on and say that none of them may be stopped, and when they
// say that one may, one may.
func TestDisklessOtherKey(t *testing.T) {
	t.Parallel()
	right, wrong := writeKey(t, "the key of all of them"), writeKey(t, "another one, by mistake")
	g := &group{}
	at := make(map[*manager]string) // health
	var addrs []string
	for _, name := range []string{"m1", "m2", "m3"} {
		m := &manager{name: name, addr: freeAddr(t), log: filepath.Join(t.TempDir(), name+".log"), diskless: true}
		g.managers = append(g.managers, m)
		addrs = append(addrs, m.addr)
		at[m] = "http://" + freeAddr(t)
	}
	for _, m := range g.managers {
		m.args = []string{
			"manager", "run", "--store=flease", "--listen=" + m.addr, "--http=" + strings.TrimPrefix(at[m], "http://"),
			"--peers=" + strings.Join(addrs, ","), "--ttl=" + leaderTTL.String(), "--longest-lease=1s", right,
		}
		m.start(t)
	}
	dispensable := func(who ...*manager) {
		t.Helper()
		for _, m := range who {
			eventually(t, m.name+" can do without another", func() error { return probe(t, at[m]+"/restartz", http.StatusOK, "ok") })
		}
	}
	dispensable(g.managers...)
	leader := g.leader(t)
	odd := g.without(leader).managers[0]
	odd.terminate(t)
	odd.args[len(odd.args)-1] = wrong
	odd.start(t)
	eventually(t, "it does not take part", func() error {
		return probe(t, at[odd]+"/readyz", http.StatusServiceUnavailable, "does not take part", "--peer-key-file")
	})
	for _, m := range g.without(odd).managers {
		eventually(t, m.name+" says that no other may be stopped", func() error {
			return probe(t, at[m]+"/restartz", http.StatusServiceUnavailable, odd.addr+" does not vote", "--peer-key-file")
		})
		if err := probe(t, at[m]+"/readyz", http.StatusOK, "ok, led by "+leader.addr, odd.addr+" does not vote"); err != nil {
			t.Error(err)
		}
	}
	status, err := getStatus(t, leader.addr)
	if err != nil || !slices.ContainsFunc(status.GetWarnings(), func(w string) bool { return strings.Contains(w, odd.addr) }) {
		t.Errorf("the leader's status warns of %q: %v", status.GetWarnings(), err)
	}
	odd.terminate(t)
	odd.args[len(odd.args)-1] = right
	odd.start(t)
	dispensable(odd)
	dispensable(leader)
	leader.kill()
	within(t, 4*leaderTTL+slack, "another leads", func() error {
		next, err := g.without(leader).findLeader(t)
		if err == nil {
			err = probe(t, at[next]+"/readyz", http.StatusOK, "ok, led by "+next.addr)
		}
		return err
	})
}

// TestDisklessBeginsWithOneKey: a group does not begin with a manager that has no vote.
func TestDisklessBeginsWithOneKey(t *testing.T) {
	t.Parallel()
	right, wrong := writeKey(t, "the key of all of them"), writeKey(t, "another one, by mistake")
	var addrs []string
	g := &group{}
	for range 3 {
		addrs = append(addrs, freeAddr(t))
	}
	for i, addr := range addrs {
		m := &manager{name: fmt.Sprintf("m%d", i+1), addr: addr, log: filepath.Join(t.TempDir(), "log"), diskless: true}
		m.args = []string{"manager", "run", "--store=flease", "--listen=" + addr, "--http=", "--peers=" + strings.Join(addrs, ","), "--longest-lease=1s", right}
		if i == 2 {
			m.args[len(m.args)-1] = wrong
		}
		g.managers = append(g.managers, m)
		m.start(t)
	}
	eventually(t, "the leader says whom it waits for", func() error {
		leader, err := g.findLeader(t)
		if err != nil {
			return err
		}
		status, err := getStatus(t, leader.addr)
		ready := leader.ready(t) == nil
		if err == nil && (ready || !strings.Contains(status.GetProblem(), addrs[2]+" (")) {
			err = fmt.Errorf("that it is ready is %v, and it says: %q", ready, status.GetProblem())
		}
		return err
	})
	odd := g.managers[2]
	odd.terminate(t)
	odd.args[len(odd.args)-1] = right
	odd.start(t)
	eventually(t, "the group has begun", func() error { return odd.ready(t) })
}
