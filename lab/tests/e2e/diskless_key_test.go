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

// writeKey writes a peer key file, and returns the flag that names it.
func writeKey(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peers.key")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--peer-key-file=" + path
}

// probe sends an HTTP request, and returns an error unless the response has a status and
// contains all words.
func probe(t *testing.T, url string, code int, words ...string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	for _, w := range words {
		if err == nil && (response.StatusCode != code || !strings.Contains(string(body), w)) {
			err = fmt.Errorf("%s: status %d, want %d with %q: %s", url, response.StatusCode, code, w, body)
		}
	}
	return err
}

// TestDisklessOtherKey: a manager that is restarted with another key has no vote and is not
// ready. The others continue, and their /restartz reports that no other may be stopped. When
// /restartz reports that one may be stopped, the group survives it.
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
			eventually(t, m.name+" reports that another may be stopped", func() error { return probe(t, at[m]+"/restartz", http.StatusOK, "ok") })
		}
	}
	dispensable(g.managers...)
	leader := g.leader(t)
	mismatched := g.without(leader).managers[0]
	mismatched.terminate(t)
	mismatched.args[len(mismatched.args)-1] = wrong
	mismatched.start(t)
	eventually(t, "the manager reports that it has no vote", func() error {
		return probe(t, at[mismatched]+"/readyz", http.StatusServiceUnavailable, "does not take part", "--peer-key-file")
	})
	for _, m := range g.without(mismatched).managers {
		eventually(t, m.name+" reports that no other may be stopped", func() error {
			return probe(t, at[m]+"/restartz", http.StatusServiceUnavailable, mismatched.addr+" does not vote", "--peer-key-file")
		})
		if err := probe(t, at[m]+"/readyz", http.StatusOK, "ok, led by "+leader.addr, mismatched.addr+" does not vote"); err != nil {
			t.Error(err)
		}
	}
	status, err := getStatus(t, leader.addr)
	if err != nil || !slices.ContainsFunc(status.GetWarnings(), func(w string) bool { return strings.Contains(w, mismatched.addr) }) {
		t.Errorf("warnings in the leader's status: %q, %v", status.GetWarnings(), err)
	}
	mismatched.terminate(t)
	mismatched.args[len(mismatched.args)-1] = right
	mismatched.start(t)
	dispensable(mismatched)
	dispensable(leader)
	leader.kill()
	within(t, 4*leaderTTL+slack, "another manager leads", func() error {
		next, err := g.without(leader).findLeader(t)
		if err == nil {
			err = probe(t, at[next]+"/readyz", http.StatusOK, "ok, led by "+next.addr)
		}
		return err
	})
}

// TestDisklessBeginsWithOneKey: a group does not start while a manager has another key.
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
	eventually(t, "the leader names the manager that it waits for", func() error {
		leader, err := g.findLeader(t)
		if err != nil {
			return err
		}
		status, err := getStatus(t, leader.addr)
		ready := leader.ready(t) == nil
		if err == nil && (ready || !strings.Contains(status.GetProblem(), addrs[2]+" (")) {
			err = fmt.Errorf("ready: %v, problem: %q", ready, status.GetProblem())
		}
		return err
	})
	mismatched := g.managers[2]
	mismatched.terminate(t)
	mismatched.args[len(mismatched.args)-1] = right
	mismatched.start(t)
	eventually(t, "the group is ready", func() error { return mismatched.ready(t) })
}
