package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// TestQuota: a full store rejects writes with the reason, loses no data, and accepts writes again
// after old revisions are compacted.
func TestQuota(t *testing.T) {
	m := embed(t, etcd.EmbedConfig{Dir: t.TempDir(), Quota: 16 << 20})
	term := takeOver(t, m, "m1")
	// Each write of the catalog leaves an old revision of half a megabyte.
	big := []storage.Namespace{{Name: "big", Policy: strings.Repeat("x", 500<<10)}}
	var full error
	done := 0
	for n := 0; full == nil && n < 200; n++ {
		now, err := m.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := m.SaveCatalog(t.Context(), &storage.Catalog{Version: now.Version, Term: term, Namespaces: big})
		switch outcome {
		case storage.Done:
			done++
		case storage.Unknown:
			full = err
		default:
			t.Fatalf("write %d: %v, %v", n, outcome, err)
		}
	}
	if done == 0 || leasehold.KindOf(full) != leasehold.ErrLimit || !strings.Contains(fmt.Sprint(full), "quota") {
		t.Fatalf("after %d writes: %v, want an error of kind limit that names the quota", done, full)
	}
	if c, err := m.Catalog(t.Context()); err != nil || len(c.Namespaces) != 1 {
		t.Errorf("read of a full store: %v", err)
	}
	eventually(t, "a write after compaction", func(ctx context.Context) error {
		now, err := m.Catalog(ctx)
		if err != nil {
			return err
		}
		outcome, err := m.SaveCatalog(ctx, &storage.Catalog{Version: now.Version, Term: term})
		if outcome != storage.Done {
			return fmt.Errorf("%v: %w", outcome, err)
		}
		return nil
	})
	takeOver(t, m, "m2")
}

// TestUncompacted: a cluster without compaction has all its revisions.
func TestUncompacted(t *testing.T) {
	m := embed(t, etcd.EmbedConfig{Dir: t.TempDir()})
	takeOver(t, m, "m1")
	before := m.Uncompacted(t.Context())
	takeOver(t, m, "m2")
	if after := m.Uncompacted(t.Context()); before == 0 || after != before+1 {
		t.Errorf("%d revisions, and %d after a write", before, after)
	}
	if err := m.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := m.Uncompacted(t.Context()); n != 0 {
		t.Errorf("%d revisions after compaction", n)
	}
}
