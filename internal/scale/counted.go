package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/store"
)

// counted counts what is written to a store.
type counted struct {
	store.Store
	swaps, batches, changes, snapshots, catalogs atomic.Int64

	// committed is when a namespace's change was committed, by its number.
	committed sync.Map
}

// A commit names a change.
type commit struct {
	ns  leasehold.Namespace
	lsn uint64
}

func (c *counted) Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error) {
	c.swaps.Add(1)
	return c.Store.Swap(ctx, prev, next)
}

func (c *counted) SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error) {
	c.catalogs.Add(1)
	return c.Store.SaveCatalog(ctx, next)
}

func (c *counted) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	c.batches.Add(1)
	c.changes.Add(int64(len(b.Changes)))
	outcome, err := c.Store.Append(ctx, b)
	c.committed.Store(commit{b.Namespace, uint64(b.Last())}, time.Now())
	return outcome, err
}

func (c *counted) SaveSnapshot(ctx context.Context, s *storage.Snapshot) error {
	c.snapshots.Add(1)
	return c.Store.SaveSnapshot(ctx, s)
}
