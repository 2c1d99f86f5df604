package mem_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/storetest"
	"github.com/leasehold-dev/leasehold/store/mem"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return mem.New() })
}

// A disk is shared by those who open it, and outlives them.
func TestDiskIsShared(t *testing.T) {
	disk := mem.NewDisk()
	a, b := disk.Open(), disk.Open()
	if _, outcome, err := a.Swap(t.Context(), 0, storage.Record{Term: 1, Leader: "a"}); outcome != storage.Done {
		t.Fatal(outcome, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Record(t.Context(), true); err != nil || r.Leader != "a" {
		t.Errorf("the other sees %+v (%v)", r, err)
	}
	if _, err := a.Record(t.Context(), true); leasehold.KindOf(err) != leasehold.ErrClosed {
		t.Errorf("the closed one answers %v", err)
	}
}
