// Package kv is the one implementation of [store.Store], over a seam that is
// small enough for any transactional key-value store: [DB].
//
// # Layout
//
// All keys are relative to a prefix that the DB adds.
//
//	record                     the leader record
//	term                       its term, in decimal
//	catalog                    the configuration of all namespaces
//	ns/NAME/head               where the log ends, which snapshot is the newest
//	ns/NAME/log/LSN            changes, the first of which has this LSN
//	ns/NAME/snapshot/LSN/PIECE a part of the table at this LSN
//
// The term has a key of its own, beside the record that has it too, because
// the record is written every second and the term is not: a write is guarded
// by the value of the term's key, and a renewal of the record under way at the
// same time does not disturb it. A swap that changes the term writes both in
// one transaction.
//
// The head decides what is visible. Whatever is stored beyond the log's end or
// under another snapshot than the newest does not exist. So something too
// large for one request is written in pieces first, and becomes visible by one
// guarded change of the head.
//
// # Why pieces of two writers never mix
//
// Every transaction on a namespace is guarded by the writer's term, so nothing
// that a deposed leader still has under way arrives. Within a term:
//
//   - A batch in several pieces first writes the head again, unchanged, and
//     removes whatever is beyond the log's end. All that follows is guarded by
//     the revision that this gave the head. A request of an earlier attempt
//     that arrives late finds another revision and does nothing.
//   - A snapshot's pieces are the same bytes whoever writes them, since they
//     encode one table. The transaction that makes a snapshot visible removes
//     older ones only, and is refused if a newer one became visible meanwhile.
package kv

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A Revision numbers the writes of a database. It rises with each.
type Revision = storage.Version

// An Entry is what is stored under a key.
type Entry struct {
	Key      string
	Value    []byte   // immutable
	Revision Revision // of the write that put it there; 0: there is nothing
}

// A Span is the keys from From up to, and without, To.
type Span struct {
	From, To string
}

// A Guard is a condition on one key, of one of two kinds.
type Guard struct {
	Key      string
	Value    []byte   // not nil: the key has this value
	Revision Revision // otherwise: it was last written at this revision; 0: it is absent
}

// A Txn is written as a whole if all of its guards hold. Its puts and deletes
// touch different keys. It has less than ten operations, and its size is
// little more than [MaxPiece].
type Txn struct {
	Guards  []Guard
	Puts    []Entry // Key and Value
	Deletes []Span
	Else    []string // the keys to read, at the same instant, if a guard fails
	// Grows means that the database may refuse it to keep room for what does
	// not: it certainly has not happened then.
	Grows bool
}

// A Result is how a transaction ended.
type Result struct {
	Held     bool     // the guards held, and the transaction is written
	Revision Revision // of the write
	Else     []Entry  // in the order of Txn.Else, if the guards did not hold
}

// A DB is a linearizable key-value store. Its methods may be called from many
// goroutines at once, and return soon after their context ends.
type DB interface {
	// Peek returns the entry of a key, perhaps as it was a while ago.
	Peek(ctx context.Context, key string) (Entry, error)

	// View returns the database as it is at one instant between the call and
	// the end of the view's first read. It needs no closing.
	View() View

	// Commit runs a transaction. With an error it may have happened, or may
	// yet happen.
	Commit(ctx context.Context, t Txn) (Result, error)

	// Watch calls seen with a key's entries as they are written, as far as it
	// notices, until the context ends.
	Watch(ctx context.Context, key string, seen func(Entry))

	// Identity names the database that the newest answer came from. It does no I/O.
	Identity() storage.Identity

	// Close ends the database. No other call is under way or follows.
	Close() error
}

// A View is a database at one instant. It is for one goroutine.
type View interface {
	// Get returns the entries of a few keys, in their order.
	Get(ctx context.Context, keys ...string) ([]Entry, error)

	// Scan calls each with the entries of a span in the order of their keys.
	// It reads in pages. A view that has become too old for that is an error
	// that errors.Is [ErrViewLost].
	Scan(ctx context.Context, span Span, each func(Entry) error) error
}
