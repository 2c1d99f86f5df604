//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJoinOnANewDisk: a directory in which there is nothing of ours, such as one
// on a new disk or one that a manager has only just locked, is as good as an empty
// one. The manager joins the group, and is no group of its own.
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
		g.whole(t)
	}
}

// TestJoinFoundsNothing: with --join a manager ends rather than found a group,
// also if the one to join does not answer.
func TestJoinFoundsNothing(t *testing.T) {
	t.Parallel()
	for name, marker := range map[string]string{
		"nothing":                   "",
		"a start that did not last": `{"format":1,"member":"m2"}`,
		"the founding of a group":   `{"format":1,"member":"m2","members":{"m2":"http://127.0.0.1:1","m3":"http://127.0.0.1:2"}}`,
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
			refused(t, status, stderr, "join")
			if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
				t.Error("a store was begun")
			}
		})
	}
}

// TestLostDisk: a member of a group that comes back without its data is refused,
// and let in again once it was removed.
func TestLostDisk(t *testing.T) {
	t.Parallel()
	g := startThree(t)
	g.whole(t)
	lost := g.without(g.leader(t)).managers[0]
	rest := g.without(lost)
	lost.kill()
	if err := os.RemoveAll(lost.dataDir); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := run(t, lost.args...)
	refused(t, status, stderr, lost.dataDir, "remove the member", "empty directory")

	if status, _, stderr := run(t, "manager", "remove", lost.name, "--managers="+strings.Join(rest.addrs(), ",")); status != 0 {
		t.Fatalf("member remove ended with status %d: %s", status, stderr)
	}
	anew := newManager(t, lost.name, "--peer-listen="+freeAddr(t), "--join="+rest.managers[0].addr)
	anew.start(t)
	(&group{managers: append(rest.managers, anew)}).whole(t)
}
