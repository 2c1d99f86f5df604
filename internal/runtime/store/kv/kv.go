// Package kv implements [store.Store] on any transactional key-value store, by a small interface: [DB].
//
// # Layout
//
// All keys are relative to a prefix that the DB adds.
//
//	record                     the leader record
//	term                       its term, in decimal
//	catalog                    the configuration of all namespaces
//	ns/NAME/head               the end of the log and the newest snapshot
//	ns/NAME/log/LSN            changes, the first of which has this LSN
//	ns/NAME/snapshot/LSN/PIECE a part of the table at this LSN
//
// The term is in the record and in its own key, because the record is written every second: the value of
// the term's key guards writes, so that concurrent renewals of the record do not conflict with them. A swap
// that changes the term writes both keys in one transaction.
//
// The head defines the visible state. Pieces beyond the end of the log, and of other snapshots than the
// newest, are invisible. So a value too large for one request is first written in pieces, and becomes
// visible by one guarded write of the head.
//
// # Why pieces of two writers never mix
//
// The writer's term guards every transaction on a namespace, so late requests of a deposed leader fail. Within a
// term:
//
//   - A batch in several pieces first writes the head unchanged, and removes everything beyond the end of the log. The
//     new revision of the head guards all following transactions. A late request of an earlier attempt has another
//     revision and fails.
//   - The pieces of a snapshot are the same for all writers, because they encode the same table. The transaction that
//     makes a snapshot visible removes only older ones, and fails if a newer one is visible.
package kv

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A Revision is the number of a write of a database, in ascending order.
type Revision = storage.Version

// An Entry is a key with its value.
type Entry struct {
	Key      string
	Value    []byte   // immutable
	Revision Revision // of its last write; 0: the key is absent
}

// A Span is the keys from From up to To, exclusively.
type Span struct {
	From, To string
}

// A Guard is a condition on one key, of one of two kinds.
type Guard struct {
	Key      string
	Value    []byte   // not nil: the key has this value
	Revision Revision // otherwise: it was last written at this revision; 0: it is absent
}

// A Txn is a transaction that is executed if all of its guards hold. Its puts and deletes have different
// keys. It has less than ten operations, and its size is little more than [MaxPiece].
type Txn struct {
	Guards  []Guard
	Puts    []Entry // Key and Value
	Deletes []Span
	Else    []string // keys to read in the transaction if a guard fails
	// Grows: a nearly full database may reject the transaction, to reserve space for others. It is
	// certainly not executed then.
	Grows bool
}

// A Result is the result of a transaction.
type Result struct {
	Held     bool     // the guards held, and the transaction is executed
	Revision Revision // of the write
	Else     []Entry  // in the order of Txn.Else, if the guards did not hold
}

// A DB is a linearizable key-value store. It is safe for concurrent use. Its methods return soon after their context
// ends.
type DB interface {
	// Peek returns a possibly stale entry of a key.
	Peek(ctx context.Context, key string) (Entry, error)

	// View returns a consistent view of the database at an instant between the call and the end of the view's
	// first read. It needs no close.
	View() View

	// Commit executes a transaction. After an error the outcome is unknown, and it may be executed
	// later.
	Commit(ctx context.Context, t Txn) (Result, error)

	// Watch calls seen with new entries of a key until the context ends. Entries may be missing.
	Watch(ctx context.Context, key string, seen func(Entry))

	// Identity returns the identity of the database that sent the last reply. It does no I/O.
	Identity() storage.Identity

	// Close closes the database. There are no concurrent or later calls.
	Close() error
}

// A View is a consistent view of a database at one instant. It is for one goroutine.
type View interface {
	// Get returns the entries of keys, in their order.
	Get(ctx context.Context, keys ...string) ([]Entry, error)

	// Scan calls each with the entries of a span in the order of their keys. It reads in pages. If the view was
	// compacted meanwhile the error is [ErrViewLost].
	Scan(ctx context.Context, span Span, each func(Entry) error) error
}
