package etcd_test

import (
	"context"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// An external etcd cluster is full, and has raised its alarm: writes fail and have no effect, and reads
// succeed. After the operator frees space and disarms the alarm, writes succeed again.
func TestExternalStoreIsFull(t *testing.T) {
	url := startServer(t, "http", "--quota-backend-bytes=4194304", "--backend-batch-limit=1")
	s := open(t, etcd.Config{Endpoints: []string{url}})
	term := takeOver(t, s, "m1")
	// Each write of the catalog leaves an old revision.
	big := []storage.Namespace{{Name: "big", Policy: strings.Repeat("x", 300<<10)}}
	catalog, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	save := func(c *storage.Catalog) (storage.Outcome, error) {
		return s.SaveCatalog(t.Context(), &storage.Catalog{Version: c.Version, Term: term, Namespaces: big})
	}
	for n := 0; ; n++ {
		if n == 50 {
			t.Fatal("the store is never full")
		}
		outcome, err := save(catalog)
		if err != nil {
			if outcome == storage.Done || leasehold.KindOf(err) != leasehold.ErrLimit || !strings.Contains(err.Error(), "space") {
				t.Errorf("write to a full store: %v: %v", outcome, err)
			}
			break
		}
		if catalog, err = s.Catalog(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now, err := s.Catalog(t.Context())
	if err != nil || now.Version != catalog.Version {
		t.Errorf("read after the rejected write: version %d, want %d: %v", now.Version, catalog.Version, err)
	}
	if r, err := s.Record(t.Context(), true); err != nil || r.Term != term {
		t.Errorf("the leader record is %+v: %v", r, err)
	}

	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: startTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	eventually(t, "make room", func(ctx context.Context) error {
		got, err := c.Get(ctx, "x")
		if err != nil {
			return err
		}
		if _, err := c.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			return err
		}
		if _, err := c.Defragment(ctx, url); err != nil {
			return err
		}
		_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	})
	if outcome, err := save(now); outcome != storage.Done || err != nil {
		t.Errorf("write after freeing space: %v, %v", outcome, err)
	}
}
