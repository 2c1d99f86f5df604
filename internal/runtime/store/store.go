// Package store is the interface of the store in which managers keep the leader record, the configuration of
// namespaces and the lease tables.
//
// It requires linearizable compare-and-swap and linearizable reads. It depends on no lease, TTL or clock of
// a store. A watch is a hint. store/mem is in memory, for tests; server/store/etcd uses etcd, embedded or
// external. internal/runtime/store/storetest is the test suite of all implementations.
package store

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A Store has the durable state of a manager group, and the leader record for its leader election. It is safe for
// concurrent use. Every method returns soon after its context ends.
//
// A write has an outcome: [storage.Done], [storage.Conflict] or [storage.Unknown]. Unknown has an error, and means
// that the write may have happened or may happen later. Conflict is final. It has an error if the same request can
// never succeed.
type Store interface {
	// Record returns the leader record, with Version 0 if there is none. A fresh read is
	// linearizable; any other may be stale.
	Record(ctx context.Context, fresh bool) (storage.Record, error)

	// Swap writes the leader record if the stored one has version prev. It returns the new version, which is
	// higher than all previous ones.
	Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error)

	// Identity returns the identity of the store that sent the last reply. It does no I/O.
	Identity() storage.Identity

	// WatchRecord calls seen with new records until the context ends or the store is closed. It is a hint:
	// records may be missing.
	WatchRecord(ctx context.Context, seen func(storage.Record))

	Tables

	// Close closes the store and waits for its goroutines.
	Close() error
}

// Tables has the configuration and the lease tables of namespaces. In groups without a leader record "the
// term of the leader record" is the term of the current leader.
type Tables interface {
	// Catalog returns the configuration of all namespaces and the term of the leader record, in one linearizable
	// read.
	Catalog(ctx context.Context) (*storage.Catalog, error)

	// SaveCatalog writes the catalog if the leader record has the catalog's
	// Term and the stored catalog has its Version.
	SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error)

	// Append writes a batch if the leader record has its Term and the log of its namespace ends at its
	// Prev. The size of a batch is limited only by memory: an implementation must split it if necessary. A batch
	// with a Base replaces the table and the log, except for the history.
	Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error)

	// End returns the end of a namespace's log and the term of the leader record, in one linearizable
	// read.
	End(ctx context.Context, ns leasehold.Namespace) (storage.End, error)

	// Load returns the stored state of a namespace's table, in one linearizable read. A namespace that was never
	// written is empty.
	Load(ctx context.Context, ns leasehold.Namespace) (*storage.State, error)

	// SaveSnapshot makes Load faster. It does not change the result of Load. It has no effect, without an
	// error, if the leader record has another term or there is a newer snapshot.
	SaveSnapshot(ctx context.Context, s *storage.Snapshot) error

	// History returns at most most retained changes of a namespace before an LSN (0: from the end), newest
	// first.
	History(ctx context.Context, ns leasehold.Namespace, before leasehold.LSN, most int) ([]Past, error)
}

// A Past is a change with the wall-clock time of its writer, for display only.
type Past struct {
	At     time.Time
	Change table.Change
}

// A Member is one process of a store that is embedded in the managers.
type Member struct {
	ID       uint64
	Name     string
	PeerURLs []string
	Learner  bool // has joined and not caught up; it has no vote
	Healthy  bool // has replied just now
}

// Members changes the membership of a store that is embedded in the managers.
type Members interface {
	Members(ctx context.Context) ([]Member, error)
	AddMember(ctx context.Context, name, peerURL string) (Member, error)
	RemoveMember(ctx context.Context, nameOrID string) error
	Cluster() string
	// StepAside transfers the leadership of the store to another member, if this one has it. The leading
	// manager calls it, so that its crash causes one election instead of two.
	StepAside(ctx context.Context) error
}
