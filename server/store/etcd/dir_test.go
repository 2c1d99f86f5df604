package etcd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// contents returns the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
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

// TestForeignDirectoryIsRejected: a directory that belongs to another member or program is
// rejected and stays unchanged.
func TestForeignDirectoryIsRejected(t *testing.T) {
	const good = `{"format":1,"member":"leasehold","cluster":"abc"}`
	for name, c := range map[string]struct {
		files map[string]string
		cfg   etcd.EmbedConfig
		want  string
	}{
		"other program":   {map[string]string{"photo.jpg": "x"}, etcd.EmbedConfig{}, `has "photo.jpg" in it`},
		"a newer format":  {map[string]string{"leasehold.json": `{"format":2,"member":"leasehold"}`}, etcd.EmbedConfig{}, "use the newer program"},
		"another member":  {map[string]string{"leasehold.json": good}, etcd.EmbedConfig{Name: "m2"}, `belongs to member "leasehold"`},
		"another cluster": {map[string]string{"leasehold.json": good}, etcd.EmbedConfig{Cluster: "def"}, "belongs to cluster abc"},
		"missing data":    {map[string]string{"leasehold.json": good}, etcd.EmbedConfig{}, "its data is gone"},
		"damaged marker":  {map[string]string{"leasehold.json": "{"}, etcd.EmbedConfig{}, "makes no sense"},
		"empty marker":    {map[string]string{"leasehold.json": "{}"}, etcd.EmbedConfig{}, "has no format"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.files["leasehold.lock"] = ""
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := contents(t, dir)
			c.cfg.Dir = dir
			_, err := tryEmbed(t, c.cfg)
			if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(fmt.Sprint(err), c.want) || !strings.Contains(fmt.Sprint(err), dir) {
				t.Errorf("error %v, want one that contains %q", err, c.want)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("it was touched (-before +after):\n%s", diff)
			}
		})
	}
}

func TestFileIsNoDataDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tryEmbed(t, etcd.EmbedConfig{Dir: path}); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Error(err)
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	first := embed(t, etcd.EmbedConfig{Dir: dir})
	_, err := tryEmbed(t, etcd.EmbedConfig{Dir: dir})
	if leasehold.KindOf(err) != leasehold.ErrExists || !strings.Contains(fmt.Sprint(err), "another process uses it") {
		t.Errorf("directory in use: %v", err)
	}
	takeOver(t, first, "m1") // the first process continues
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	embed(t, etcd.EmbedConfig{Dir: dir})
}

func TestEmbedRejectsInvalidConfig(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for name, cfg := range map[string]etcd.EmbedConfig{
		"no directory":              {},
		"a name with a comma":       {Dir: "d", Name: "a,b"},
		"members without a URL":     {Dir: "d", Name: "a", Members: map[string]string{"a": url}},
		"not among the members":     {Dir: "d", Name: "a", PeerURL: url, Members: map[string]string{"b": url}},
		"join without members":      {Dir: "d", Name: "a", PeerURL: url, Existing: true},
		"invalid URL":               {Dir: "d", Name: "a", PeerURL: "127.0.0.1:1"},
		"invalid URL of a member":   {Dir: "d", Name: "a", PeerURL: url, Members: map[string]string{"a": url, "b": "x"}},
		"listening on a name":       {Dir: t.TempDir(), Name: "a", PeerURL: url, ListenPeer: "http://localhost:1"},
		"certificate without a key": {Dir: "d", Name: "a", PeerURL: url, PeerTLS: etcd.PeerTLS{CertFile: "c"}},
	} {
		if _, err := tryEmbed(t, cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEmbedWithoutMajority: a failed start leaves no state that prevents the next start.
func TestEmbedWithoutMajority(t *testing.T) {
	a, b := "http://"+freeAddr(t), "http://"+freeAddr(t)
	cfg := etcd.EmbedConfig{Dir: t.TempDir(), Name: "a", PeerURL: a, Members: map[string]string{"a": a, "b": b}, Logger: quiet(t)}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 300e6)
		_, err := etcd.Embed(ctx, cfg)
		cancel()
		if leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(fmt.Sprint(err), b) {
			t.Fatalf("error %v, want one of kind unavailable that names the members", err)
		}
	}
}

// TestInterruptedFirstStartResumes: a member is killed while it forms or joins a group. A restart
// without the group's members does not form a new group.
func TestInterruptedFirstStartResumes(t *testing.T) {
	a, b := "http://"+freeAddr(t), "http://"+freeAddr(t)
	cfg := etcd.EmbedConfig{Dir: t.TempDir(), Name: "a", PeerURL: a, Members: map[string]string{"a": a, "b": b}, Existing: true, Logger: quiet(t)}
	start := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
		defer cancel()
		m, err := etcd.Embed(ctx, cfg)
		if err == nil {
			_ = m.Close()
		}
		return err
	}
	if err := start(); leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Fatalf("join of a group that does not respond: %v", err)
	}
	cfg.Members, cfg.Existing = nil, false
	if err := start(); leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Errorf("restart: %v, want it to wait for the group", err)
	}
	cfg.PeerURL = ""
	if err := start(); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("restart as a single member: %v", err)
	}
}

// TestMembersOfAnotherGroupAreRejected: a member keeps the group of its directory. A configuration
// with another group is an error, because it could create two groups.
func TestMembersOfAnotherGroupAreRejected(t *testing.T) {
	dir, url := t.TempDir(), "http://"+freeAddr(t)
	m := embed(t, etcd.EmbedConfig{Dir: dir, Name: "a", PeerURL: url})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	cfg := etcd.EmbedConfig{Dir: dir, Name: "a", PeerURL: url, Members: map[string]string{"a": url, "b": "http://" + freeAddr(t)}}
	if _, err := tryEmbed(t, cfg); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(fmt.Sprint(err), `the others ["b"]`) {
		t.Errorf("error %v, want one about the other members", err)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("it was touched (-before +after):\n%s", diff)
	}
	cfg.Members = map[string]string{"a": url}
	if m, err := tryEmbed(t, cfg); err != nil {
		t.Errorf("its own group is rejected: %v", err)
	} else if err := m.Close(); err != nil {
		t.Error(err)
	}
}
