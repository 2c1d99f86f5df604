// Package store is the interface between managers and the store in which they keep the
// leader record, the configuration of namespaces and the lease tables. Package manager takes
// a store of package server/store/etcd or store/mem.
//
// It requires linearizable compare-and-swap and linearizable reads, and
// nothing that involves time: no lease, no TTL and no clock of a store is
// trusted. A watch is a hint. store/mem keeps everything in memory, for tests;
// server/store/etcd keeps it in etcd, embedded in the process or a cluster of its own.
// internal/runtime/store/storetest is the suite that all of them pass.
package store

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A Store keeps what a manager group must not forget, and by a record in it the
// group finds out who leads. Its methods may be called from many goroutines at
// once. Every method returns soon after its context ends.
//
// A write has an outcome: [storage.Done], [storage.Conflict] or
// [storage.Unknown]. Unknown comes with the error that explains it, and means
// that the write may have happened or may yet happen. Conflict is final; it
// comes with an error if the same request can never succeed.
type Store interface {
	// Record returns the leader record, with Version 0 if there is none yet. A
	// fresh read is linearizable; another may be old, but never made up.
	Record(ctx context.Context, fresh bool) (storage.Record, error)

	// Swap writes the leader record if the stored one has version prev, and
	// returns the new version, which is higher than any before.
	Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error)

	// Identity names the store that the newest answer came from. It does no I/O.
	Identity() storage.Identity

	// WatchRecord calls seen with records as they are written, as far as it
	// notices, until the context ends or the store is closed. It is a hint:
	// records may be missing.
	WatchRecord(ctx context.Context, seen func(storage.Record))

	Tables

	// Close ends the store. It waits for what it started.
	Close() error
}

// Tables are what a group knows about its namespaces: how they are configured, and
// their lease tables. Where they say "the leader record" and there is none, because
// the managers agree otherwise who leads, that is the present leader's term.
type Tables interface {
	// Catalog returns the configuration of all namespaces and the term of the
	// leader record, both as of one instant, linearizably.
	Catalog(ctx context.Context) (*storage.Catalog, error)

	// SaveCatalog writes the catalog if the leader record has the catalog's
	// Term and the stored catalog has its Version.
	SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error)

	// Append writes a batch if the leader record has its Term and the log of
	// its namespace ends at its Prev. Its size is bounded only by memory: an
	// implementation on a store with limits must cope. One with a Base takes the place
	// of all that was there, but for its history.
	Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error)

	// End returns where a namespace's log ends and the term of the leader
	// record, both as of one instant, linearizably.
	End(ctx context.Context, ns leasehold.Namespace) (storage.End, error)

	// Load returns everything stored about a namespace's table as of one
	// instant, linearizably. A namespace that was never written is empty.
	Load(ctx context.Context, ns leasehold.Namespace) (*storage.State, error)

	// SaveSnapshot lets the store load faster. It never changes what Load
	// describes. It is refused, without an error, if the leader record has
	// another term or a newer snapshot is there.
	SaveSnapshot(ctx context.Context, s *storage.Snapshot) error

	// History returns changes of a namespace, newest first, before an LSN (0:
	// from the end), at most as many as told. Changes older than what is kept
	// are not there.
	History(ctx context.Context, ns leasehold.Namespace, before leasehold.LSN, most int) ([]Past, error)
}

// A Past is a change and when it was written, on the wall clock of whoever
// wrote it: for people to read, never to decide by.
type Past struct {
	At     time.Time
	Change table.Change
}

// A Member is one process of a store that managers keep among themselves.
type Member struct {
	ID       uint64
	Name     string
	PeerURLs []string
	Learner  bool // it has joined but not yet caught up; it does not vote
	Healthy  bool // it has answered just now
}

// Members is what managers that keep the store among themselves can do about
// their number.
type Members interface {
	Members(ctx context.Context) ([]Member, error)
	AddMember(ctx context.Context, name, peerURL string) (Member, error)
	RemoveMember(ctx context.Context, nameOrID string) error
	Cluster() string
	// StepAside lets another member lead the store itself, if this one does: the
	// manager that leads asks for it, so that its death costs one election and
	// not two.
	StepAside(ctx context.Context) error
}
