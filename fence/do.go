package fence

import (
	"context"
	"database/sql"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// checkAttempts is how often Do begins, if at repeatable read or above each time
// another transaction on the resource ends while it waits.
const checkAttempts = 5

// Do runs write in a transaction that a lease allows, and commits it. If a later
// owner has written already it fails with [leasehold.ErrStale], and write is not
// called. Otherwise it is called once. If it fails, or panics, everything is
// rolled back.
//
// The error of write is returned as it is, but for a conflict with another
// transaction. That one, and whatever else the database could not do, is
// [leasehold.ErrUnavailable]: nothing was written. It is [leasehold.ErrIndeterminate] if
// the commit may have happened. Bad arguments are [leasehold.ErrInvalid], and a missing
// table is [leasehold.ErrNotFound]. Do does not call write again by itself: ask Held, or Check
// again, and call Do again after a backoff.
//
// Write must neither commit nor roll back, and not use the transaction after it
// has returned. It is not detected if it does so with a statement: after a COMMIT
// of its own it writes without the guard, and after a ROLLBACK Do returns nil
// although nothing is there. It must return the errors of its statements: after one,
// PostgreSQL makes a rollback of the commit, unless a savepoint comes to its rescue.
// Each driver says that in words of its own, so that Do can only report ErrIndeterminate,
// although nothing was written.
//
// What write reads is what it may act upon. Do costs the two round trips of a
// transaction, one for [SQL.Check], and those of write.
func (s SQL) Do(ctx context.Context, db *sql.DB, resource string, generation leasehold.Generation, write func(*sql.Tx) error) error {
	if _, err := s.validate(resource, generation); err != nil {
		return err
	}
	tx, err := s.begin(ctx, db, resource, generation)
	if err != nil {
		return err
	}
	// Of no effect after Commit. If the connection is lost, the database rolls
	// back by itself.
	defer func() { _ = tx.Rollback() }()
	if err := write(tx); err != nil {
		return writeFailed(resource, err)
	}
	if err := ctx.Err(); err != nil {
		return token.Unwritten(leasehold.ErrUnavailable, resource, err)
	}
	if err := tx.Commit(); err != nil {
		return commitFailed(ctx, resource, err)
	}
	return nil
}

// begin returns a transaction that has passed Check. It begins anew after a
// conflict, since nothing of the application's has run yet.
func (s SQL) begin(ctx context.Context, db *sql.DB, resource string, generation leasehold.Generation) (*sql.Tx, error) {
	for attempt := 1; ; attempt++ {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: s.Isolation})
		if err != nil {
			return nil, token.Unwritten(leasehold.ErrUnavailable, resource, err)
		}
		err = s.Check(ctx, tx, resource, generation)
		if err == nil {
			return tx, nil
		}
		_ = tx.Rollback() // or the database does when it misses us
		if stateOf(err) != serializationFailure || attempt == checkAttempts {
			return nil, err
		}
	}
}
