//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// statusFailed is the exit status of a command that failed.
const statusFailed = 2

// TestForeignDataDirectories: a manager with a data directory of another manager
// exits with an error and changes no file.
func TestForeignDataDirectories(t *testing.T) {
	t.Parallel()
	lone := newDataDir(t, newManager(t, "m1"))
	one := "http://" + freeAddr(t)
	founding := newDataDir(t, newManager(t, "m1", "--members=m1="+one))
	other := startLone(t, "--peer-listen="+freeAddr(t)).managers[0]
	for name, test := range map[string]struct {
		from  *manager
		spoil func(t *testing.T, dir string)
		flags []string
		want  []string // in the message
	}{
		"another member's": {
			from: lone, flags: []string{"--name=m2"}, want: []string{`member "m1"`, `"m2"`},
		},
		"of a single manager": {
			from:  lone,
			flags: []string{"--name=m1", "--members=m1=http://" + freeAddr(t) + ",m2=http://" + freeAddr(t)},
			want:  []string{`the members ["m1"]`, `others ["m2"]`, "empty directory"},
		},
		"of another group": {
			from:  founding,
			flags: []string{"--name=m1", "--members=m1=" + one + ",x2=http://" + freeAddr(t) + ",x3=http://" + freeAddr(t)},
			want:  []string{`the members ["m1"]`, `others ["x2" "x3"]`, "empty directory"},
		},
		"of another group than that of --join": {
			from:  newDataDir(t, newManager(t, "m9")),
			flags: []string{"--name=m9", "--peer-listen=" + freeAddr(t), "--join=" + other.addr},
			want:  []string{other.addr, `no member "m9"`, "empty directory"},
		},
		"of a newer program": {
			from: lone, flags: []string{"--name=m1"}, want: []string{"format 99", "newer program"},
			spoil: func(t *testing.T, dir string) {
				marker := filepath.Join(dir, "leasehold.json")
				text, err := os.ReadFile(marker)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, marker, strings.Replace(string(text), `"format": 1`, `"format": 99`, 1))
			},
		},
		"of another program": {
			from: lone, flags: []string{"--name=m1"}, want: []string{"photo.jpg", "empty one"},
			spoil: func(t *testing.T, dir string) {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, "photo.jpg"), "x")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(test.from.dataDir)); err != nil {
				t.Fatal(err)
			}
			if test.spoil != nil {
				test.spoil(t, dir)
			}
			before := contents(t, dir)
			status, _, stderr := run(t, append([]string{"manager", "run", "--listen=" + freeAddr(t), "--http=", "--data-dir=" + dir}, test.flags...)...)
			wantRefused(t, status, stderr, append(test.want, dir)...)
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("the directory changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestDataDirectoryInUse: the data directory of a running manager is refused, and the
// running manager continues.
func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	g := startLone(t)
	m := g.managers[0]
	status, _, stderr := run(t, "manager", "run", "--listen="+freeAddr(t), "--http=", "--name=m1", "--data-dir="+m.dataDir)
	wantRefused(t, status, stderr, m.dataDir, "another process uses it")
	g.createNamespace(t, "still", keptLease)
}

// TestLoneManagerKilled: a killed manager has its table when it is restarted, and
// owners keep their leases if it restarts before they expire.
func TestLoneManagerKilled(t *testing.T) {
	t.Parallel()
	const ns = "lone"
	g := startLone(t)
	m := g.managers[0]
	g.createNamespace(t, ns, keptLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	g.waitForAssignment(t, ns, "ann", "bob")
	exclusive(t, ann, bob)
	g.steady(t, ns, ann, bob)
	calls := g.open(t, ns, keptLease)
	before := ranges(t, g, ns)

	for range 2 {
		m.kill()
		m.start(t)
		g.leader(t)
		g.waitForAssignment(t, ns, "ann", "bob")
		if diff := cmp.Diff(before, ranges(t, g, ns)); diff != "" {
			t.Errorf("the table changed (-before +after):\n%s", diff)
		}
	}
	if losses := calls.reportedLosses(); len(losses) > 0 {
		t.Errorf("the lookup reported losses: %v", losses)
	}
}

// ranges returns the table as text.
func ranges(t *testing.T, g *group, ns string) (out []string) {
	t.Helper()
	list, err := g.listRanges(t, ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		out = append(out, fmt.Sprintf("%016x@%d %s", r.GetLease().GetStart(), r.GetLease().GetGeneration(), r.GetOwner()))
	}
	return out
}

// newDataDir runs a manager once, to create its data directory.
func newDataDir(t *testing.T, m *manager) *manager {
	t.Helper()
	m.start(t)
	(&group{managers: []*manager{m}}).leader(t)
	m.terminate(t)
	return m
}

// wantRefused requires that a command failed with an error that contains all texts.
func wantRefused(t *testing.T, status int, stderr string, want ...string) {
	t.Helper()
	if status != statusFailed {
		t.Errorf("exit status %d, want %d", status, statusFailed)
	}
	for _, text := range want {
		if !strings.Contains(stderr, text) {
			t.Errorf("the message lacks %q:\n%s", text, stderr)
		}
	}
}

// contents returns the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
