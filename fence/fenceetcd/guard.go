package fenceetcd

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultPrefix is what the keys of fences begin with unless Guard says otherwise.
const DefaultPrefix = "leasehold/fence/"

// Guard guards writes to etcd. The zero Guard is ready to be used. It has no
// state: its methods may be called by many goroutines at once, and with many
// clients.
type Guard struct {
	// Prefix is what the keys of fences begin with. Default DefaultPrefix. Each
	// namespace has its own generations: give each a prefix of its own, or resources
	// that differ.
	Prefix string
}

// Key returns the key that remembers the generation of a resource.
func (g Guard) Key(resource string) string {
	if g.Prefix == "" {
		return DefaultPrefix + resource
	}
	return g.Prefix + resource
}

// Check makes etcd know of a generation: what earlier owners write from now on is
// refused. A new owner calls it before it reads what it will act upon. It fails with
// [leasehold.ErrStale] if a later owner has come.
//
// It is no leave to write without the guard, since the next owner may come between:
// that is what [Guard.Txn] is for.
func (g Guard) Check(ctx context.Context, kv clientv3.KV, resource string, generation leasehold.Generation) error {
	_, err := g.Txn(ctx, kv, resource, generation).Commit()
	return err
}
