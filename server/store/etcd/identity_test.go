package etcd_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// TestIdentity: a restarted member keeps its identity. A copy of the data directory has the same
// cluster but a different identity, whatever its path.
func TestIdentity(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: data directories have an identity on Linux only")
	}
	dir := t.TempDir() + "/data"
	copied := dir + ".copy"
	start := func() storage.Identity {
		t.Helper()
		m := embed(t, etcd.EmbedConfig{Dir: dir})
		takeOver(t, m, "m1")
		id := m.Identity()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if id.Cluster != m.Cluster() {
			t.Errorf("the cluster is %q, want %q", id.Cluster, m.Cluster())
		}
		return id
	}
	first := start()
	if first.Directory == "" {
		t.Skip("NOT TESTED: this file system has no birth times")
	}
	if again := start(); again != first {
		t.Errorf("after a restart it is %v, and was %v", again, first)
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(copied)); err != nil { // the copy often reuses the freed inodes
		t.Fatal(err)
	}
	if id := start(); id.Cluster != first.Cluster || id.Directory == first.Directory || id.Directory == "" {
		t.Errorf("the copy is %v, the original was %v", id, first)
	}
}

// TestExternalIdentity: the first response contains the identity of a cluster.
func TestExternalIdentity(t *testing.T) {
	url := startServer(t, "http")
	s, again := open(t, etcd.Config{Endpoints: []string{url}}), open(t, etcd.Config{Endpoints: []string{url}})
	if id := s.Identity(); id.Cluster == "" || id.Directory != "" || id != again.Identity() {
		t.Errorf("identity %v, and for another client %v", id, again.Identity())
	}
	other := open(t, etcd.Config{Endpoints: []string{startServer(t, "http")}})
	if other.Identity() == s.Identity() {
		t.Errorf("two clusters are %v", s.Identity())
	}
}
