package etcd

import "github.com/leasehold-dev/leasehold/store/internal/kv"

// Under returns a store of its own, under a prefix, on a member that goes on
// when the store is closed.
func (m *Embedded) Under(prefix string) *Store {
	db := *m.db
	db.prefix, db.close = prefix, func() error { return nil }
	return &Store{kv.New(&db, kv.Config{})}
}
