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

// TestMemberWithLostDiskIsRejected: a founding member with an empty data directory must not start
// under its old identity. Its vote could elect a member that lacks committed entries.
func TestMemberWithLostDiskIsRejected(t *testing.T) {
	group := formGroup(t, etcd.PeerTLS{}, "a", "b", "c")
	if err := group["a"].Close(); err != nil { // it does not receive the next write
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
		t.Errorf("start with an empty data directory: %v", err)
	}
}

// TestMustJoinFoundsNoGroup: with MustJoin, a member whose directory belongs to no group fails and
// founds no group, whatever files the directory contains.
func TestMustJoinFoundsNoGroup(t *testing.T) {
	url := "http://" + freeAddr(t)
	others := fmt.Sprintf(`{"a":%q,"b":"http://%s"}`, url, freeAddr(t))
	for name, c := range map[string]struct {
		files map[string]string
		fresh bool
	}{
		"empty":            {nil, true},
		"new disk":         {map[string]string{"lost+found/x": ""}, true},
		"lock file":        {map[string]string{"leasehold.lock": ""}, true},
		"marker, no group": {map[string]string{"leasehold.json": `{"format":1,"member":"a"}`}, true},
		"partial marker":   {map[string]string{"leasehold.json.tmp": `{"form`}, true},
		"founding marker":  {map[string]string{"leasehold.json": `{"format":1,"member":"a","members":` + others + `}`}, false},
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
				t.Errorf("error %v, want one that contains 'must not found one'", err)
			}
		})
	}
}

// TestFreshRejectsForeignDirectory: a directory with files of another program is an error, before
// any request to the group.
func TestFreshRejectsForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	if fresh, err := etcd.Fresh(filepath.Join(dir, "none")); !fresh || err != nil {
		t.Errorf("missing directory: %v, %v", fresh, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Fresh(dir); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("foreign directory: %v", err)
	}
}
