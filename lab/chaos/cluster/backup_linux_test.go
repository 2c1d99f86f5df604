package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRestore: the data directories have exactly the content of the backup. Their previous content is the
// next backup.
func TestRestore(t *testing.T) {
	m := &Member{disk: t.TempDir()}
	m.Name = "m1"
	c := &Cluster{Managers: []*Member{m}, cfg: Config{Shape: Etcd, Dir: t.TempDir()}}
	write := func(name string) {
		t.Helper()
		path := filepath.Join(m.disk, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name string, there bool) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(m.disk, name)); (err == nil) != there || there && string(text) != name {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if !c.CopiedAt().IsZero() {
		t.Error("there is a backup before the first copy")
	}
	write("member/old")
	if err := c.copyOut(); err != nil {
		t.Fatal(err)
	}
	if err := c.keepCopy(); err != nil || c.CopiedAt().IsZero() {
		t.Fatal(err)
	}
	write("member/new")
	for _, restored := range []bool{false, true} {
		if err := c.Restore(); err != nil {
			t.Fatal(err)
		}
		want("member/old", true)
		want("member/new", restored)
	}
}
