//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoinOnANewDisk: a directory without manager data, such as a new disk with
// lost+found or one with only a lock file, counts as empty. The manager joins the group
// and does not create one.
func TestJoinOnANewDisk(t *testing.T) {
	t.Parallel()
	g := startLone(t, "--peer-listen="+freeAddr(t))
	for _, joiner := range []*manager{
		newManager(t, "m2", "--peer-listen="+freeAddr(t), "--join="+g.managers[0].addr),
		newManager(t, "m3", "--peer-listen="+freeAddr(t), "--join="+g.managers[0].addr),
	} {
		if err := os.MkdirAll(filepath.Join(joiner.dataDir, "lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(joiner.dataDir, "leasehold.lock"), "")
		joiner.start(t)
		g.managers = append(g.managers, joiner)
		g.waitForManagers(t)
	}
}

// TestJoinFoundsNothing: with --join a manager exits and does not create a group, also
// if no manager replies at the address.
func TestJoinFoundsNothing(t *testing.T) {
	t.Parallel()
	for name, marker := range map[string]string{
		"nothing":                 "",
		"an aborted start":        `{"format":1,"member":"m2"}`,
		"the founding of a group": `{"format":1,"member":"m2","members":{"m2":"http://127.0.0.1:1","m3":"http://127.0.0.1:2"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "leasehold.lock"), "")
			if marker != "" {
				writeFile(t, filepath.Join(dir, "leasehold.json"), marker)
			}
			status, _, stderr := run(t, "manager", "run", "--listen="+freeAddr(t), "--http=", "--name=m2", "--data-dir="+dir,
				"--peer-listen="+freeAddr(t), "--join="+freeAddr(t))
			wantRefused(t, status, stderr, "join")
			if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
				t.Error("a store was created")
			}
		})
	}
}

// TestLostDisk: a member that restarts without its data is refused, and can join again
// after it was removed.
func TestLostDisk(t *testing.T) {
	t.Parallel()
	g := startThree(t)
	g.waitForManagers(t)
	lost := g.without(g.leader(t)).managers[0]
	rest := g.without(lost)
	lost.kill()
	if err := os.RemoveAll(lost.dataDir); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := run(t, lost.args...)
	wantRefused(t, status, stderr, lost.dataDir, "remove the member", "empty directory")

	if status, _, stderr := run(t, "manager", "remove", lost.name, "--managers="+strings.Join(rest.addrs(), ",")); status != 0 {
		t.Fatalf("manager remove: exit status %d: %s", status, stderr)
	}
	anew := newManager(t, lost.name, "--peer-listen="+freeAddr(t), "--join="+rest.managers[0].addr)
	anew.start(t)
	(&group{managers: append(rest.managers, anew)}).waitForManagers(t)
}
