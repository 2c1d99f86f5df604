package manager

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// The kinds of requests to a store.
const (
	storeReadRecord   = "read_record"
	storeWriteRecord  = "write_record"
	storeReadCatalog  = "read_catalog"
	storeWriteCatalog = "write_catalog"
	storeReadTable    = "read_table"
	storeReadEnd      = "read_end"
	storeAppend       = "append"
	storeSnapshot     = "snapshot"
	storeHistory      = "history"
)

var storeKinds = []string{
	storeReadRecord, storeWriteRecord, storeReadCatalog, storeWriteCatalog, storeReadTable, storeReadEnd,
	storeAppend, storeSnapshot, storeHistory,
}

// timeStore returns a store whose requests are timed, or the store itself without metrics.
func (m *metrics) timeStore(s store.Store) store.Store {
	if m == nil || s == nil {
		return s
	}
	return &timedStore{s, m}
}

// A timedStore is a store whose requests are timed and whose errors are counted. A conflict is not
// an error.
type timedStore struct {
	store.Store
	metrics *metrics
}

func (s *timedStore) done(kind string, begun time.Time, err error) {
	s.metrics.store.WithLabelValues(kind).Observe(time.Since(begun).Seconds())
	if err != nil {
		s.metrics.errors.WithLabelValues(kind).Inc()
	}
}

// Record and the methods below implement [store.Store].
func (s *timedStore) Record(ctx context.Context, fresh bool) (r storage.Record, err error) {
	defer func(begun time.Time) { s.done(storeReadRecord, begun, err) }(time.Now())
	return s.Store.Record(ctx, fresh)
}

func (s *timedStore) Swap(ctx context.Context, prev storage.Version, next storage.Record) (v storage.Version, o storage.Outcome, err error) {
	defer func(begun time.Time) { s.done(storeWriteRecord, begun, err) }(time.Now())
	return s.Store.Swap(ctx, prev, next)
}

func (s *timedStore) Catalog(ctx context.Context) (c *storage.Catalog, err error) {
	defer func(begun time.Time) { s.done(storeReadCatalog, begun, err) }(time.Now())
	return s.Store.Catalog(ctx)
}

func (s *timedStore) SaveCatalog(ctx context.Context, next *storage.Catalog) (o storage.Outcome, err error) {
	defer func(begun time.Time) { s.done(storeWriteCatalog, begun, err) }(time.Now())
	return s.Store.SaveCatalog(ctx, next)
}

func (s *timedStore) Append(ctx context.Context, b *storage.Batch) (o storage.Outcome, err error) {
	defer func(begun time.Time) { s.done(storeAppend, begun, err) }(time.Now())
	return s.Store.Append(ctx, b)
}

func (s *timedStore) End(ctx context.Context, ns leasehold.Namespace) (e storage.End, err error) {
	defer func(begun time.Time) { s.done(storeReadEnd, begun, err) }(time.Now())
	return s.Store.End(ctx, ns)
}

func (s *timedStore) Load(ctx context.Context, ns leasehold.Namespace) (state *storage.State, err error) {
	defer func(begun time.Time) { s.done(storeReadTable, begun, err) }(time.Now())
	return s.Store.Load(ctx, ns)
}

func (s *timedStore) SaveSnapshot(ctx context.Context, snapshot *storage.Snapshot) (err error) {
	defer func(begun time.Time) { s.done(storeSnapshot, begun, err) }(time.Now())
	return s.Store.SaveSnapshot(ctx, snapshot)
}

func (s *timedStore) History(ctx context.Context, ns leasehold.Namespace, before leasehold.LSN, most int) (past []store.Past, err error) {
	defer func(begun time.Time) { s.done(storeHistory, begun, err) }(time.Now())
	return s.Store.History(ctx, ns, before, most)
}
