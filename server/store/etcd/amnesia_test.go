package etcd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// TestAmnesia: a founding member whose disk was lost is not let in again as if
// it were the same. With its vote, members that missed what it had committed
// with others could go on without that.
func TestAmnesia(t *testing.T) {
	group := formGroup(t, etcd.PeerTLS{}, "a", "b", "c")
	if err := group["a"].Close(); err != nil { // it misses what follows
		t.Fatal(err)
	}
	eventually(t, "two of three", func(ctx context.Context) error {
		_, err := group["b"].Record(ctx, true)
		return err
	})
	takeOver(t, group["b"], "second")
	lost := group["c"].Config()
	if err := group["c"].Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(lost.Dir); err != nil {
		t.Fatal(err)
	}
	m, err := tryEmbed(t, lost)
	if err == nil {
		_ = m.Close()
	}
	if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(fmt.Sprint(err), "remove the member") || !strings.Contains(fmt.Sprint(err), lost.Dir) {
		t.Errorf("a member that has lost its data is told %v", err)
	}
}

// On a directory that belongs to no group, a member that must join founds none,
// whatever is there already.
func TestMustJoin(t *testing.T) {
	url := "http://" + freeAddr(t)
	others := fmt.Sprintf(`{"a":%q,"b":"http://%s"}`, url, freeAddr(t))
	for name, c := range map[string]struct {
		files map[string]string
		fresh bool
	}{
		"empty":             {nil, true},
		"a new disk":        {map[string]string{"lost+found/x": ""}, true},
		"the lock":          {map[string]string{"leasehold.lock": ""}, true},
		"a bare marker":     {map[string]string{"leasehold.json": `{"format":1,"member":"a"}`}, true},
		"half of a marker":  {map[string]string{"leasehold.json.tmp": `{"form`}, true},
		"founding, at most": {map[string]string{"leasehold.json": `{"format":1,"member":"a","members":` + others + `}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if fresh, err := etcd.Fresh(dir); fresh != c.fresh || err != nil {
				t.Errorf("fresh: %v, %v; want %v", fresh, err, c.fresh)
			}
			m, err := tryEmbed(t, etcd.EmbedConfig{Dir: dir, Name: "a", PeerURL: url, MustJoin: true})
			if err == nil {
				_ = m.Close()
			}
			if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(fmt.Sprint(err), "must not found one") {
				t.Errorf("error %v, want one that says that it founds no group", err)
			}
		})
	}
}

// A directory that is somebody else's is not fresh, and is an error: before the
// group is asked for a place.
func TestFreshRefuses(t *testing.T) {
	dir := t.TempDir()
	if fresh, err := etcd.Fresh(filepath.Join(dir, "none")); !fresh || err != nil {
		t.Errorf("a directory that is not there: %v, %v", fresh, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Fresh(dir); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("somebody else's: %v", err)
	}
}
