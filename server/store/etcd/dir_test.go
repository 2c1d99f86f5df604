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

// contents are the files below a directory.
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

// A directory that is not the member's is refused, and nothing in it changes.
func TestForeignDirectories(t *testing.T) {
	const good = `{"format":1,"member":"leasehold","cluster":"abc"}`
	for name, c := range map[string]struct {
		files map[string]string
		cfg   etcd.EmbedConfig
		want  string
	}{
		"somebody else's":    {map[string]string{"photo.jpg": "x"}, etcd.EmbedConfig{}, `has "photo.jpg" in it`},
		"a newer format":     {map[string]string{"leasehold.json": `{"format":2,"member":"leasehold"}`}, etcd.EmbedConfig{}, "use the newer program"},
		"another member":     {map[string]string{"leasehold.json": good}, etcd.EmbedConfig{Name: "m2"}, `belongs to member "leasehold"`},
		"another cluster":    {map[string]string{"leasehold.json": good}, etcd.EmbedConfig{Cluster: "def"}, "belongs to cluster abc"},
		"data that is gone":  {map[string]string{"leasehold.json": good}, etcd.EmbedConfig{}, "its data is gone"},
		"a damaged marker":   {map[string]string{"leasehold.json": "{"}, etcd.EmbedConfig{}, "makes no sense"},
		"a marker of naught": {map[string]string{"leasehold.json": "{}"}, etcd.EmbedConfig{}, "has no format"},
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
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("it was touched (-before +after):\n%s", diff)
			}
		})
	}
}

func TestDirectoryThatIsAFile(t *testing.T) {
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
		t.Errorf("a directory in use: %v", err)
	}
	takeOver(t, first, "m1") // the one that had it goes on
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	embed(t, etcd.EmbedConfig{Dir: dir})
}

func TestEmbedRefuses(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for name, cfg := range map[string]etcd.EmbedConfig{
		"no directory":              {},
		"a name with a comma":       {Dir: "d", Name: "a,b"},
		"members without a URL":     {Dir: "d", Name: "a", Members: map[string]string{"a": url}},
		"not among the members":     {Dir: "d", Name: "a", PeerURL: url, Members: map[string]string{"b": url}},
		"joining nobody":            {Dir: "d", Name: "a", PeerURL: url, Existing: true},
		"a URL that is none":        {Dir: "d", Name: "a", PeerURL: "127.0.0.1:1"},
		"a member's URL is none":    {Dir: "d", Name: "a", PeerURL: url, Members: map[string]string{"a": url, "b": "x"}},
		"listening on a name":       {Dir: t.TempDir(), Name: "a", PeerURL: url, ListenPeer: "http://localhost:1"},
		"certificate without a key": {Dir: "d", Name: "a", PeerURL: url, PeerTLS: etcd.PeerTLS{CertFile: "c"}},
	} {
		if _, err := tryEmbed(t, cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A start that fails leaves nothing behind that would be in the way of the
// next.
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

// A member that was killed while it formed or joined a group, and is started
// again without being told of the group, does not form one of its own.
func TestFirstStartIsRemembered(t *testing.T) {
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
		t.Fatalf("joining a group that does not answer: %v", err)
	}
	cfg.Members, cfg.Existing = nil, false
	if err := start(); leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Errorf("started again: %v, want it to wait for the group", err)
	}
	cfg.PeerURL = ""
	if err := start(); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("started again as if alone: %v", err)
	}
}

// A member goes on with the group that it knows. To be told of another is a
// mistake that would end in two groups.
func TestDirectoryOfAnotherGroup(t *testing.T) {
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
		t.Errorf("its own group is refused: %v", err)
	} else if err := m.Close(); err != nil {
		t.Error(err)
	}
}
