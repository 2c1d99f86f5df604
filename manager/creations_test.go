package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A slowReader takes a second to read a table.
type slowReader struct{ store.Store }

func (s slowReader) Load(ctx context.Context, ns leasehold.Namespace) (*storage.State, error) {
	time.Sleep(time.Second)
	return s.Store.Load(ctx, ns)
}

// A request right after the creation of a namespace is served, though the leader reads its table slowly.
func TestNamespaceIsServedAfterCreation(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.wrap = func(s store.Store) store.Store { return slowReader{s} }
		c.start("m1")
		c.create("m1", pool())
		request := &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: pool().GetName()}
		if _, err := c.admin("m1").ListOwners(t.Context(), request); err != nil {
			t.Error(err)
		}
	})
}
