package fence

import (
	"context"
	"database/sql"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/postgres"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// checkAttempts is the number of attempts of Check in Do, which fail at repeatable read or
// above if another transaction on the resource ends during the wait.
const checkAttempts = 5

// Do runs write in a guarded transaction and commits it. If a later owner has written, it
// fails with [leasehold.ErrStale], and write is not called. Otherwise write is called once.
// If write fails or panics, the transaction is rolled back.
//
// The error of write is returned unchanged, except for a conflict with another transaction.
// That, and every other failure of the database, is [leasehold.ErrUnavailable]: nothing was
// written. It is [leasehold.ErrIndeterminate] if the commit may have succeeded. Invalid
// arguments are [leasehold.ErrInvalid], and a missing table is [leasehold.ErrNotFound]. Do
// does not retry write: after a backoff, check the lease with Held or Check, and call Do
// again.
//
// write must neither commit nor roll back, nor use the transaction after it has returned. Do
// cannot detect such statements: writes after a COMMIT are not guarded, and after a ROLLBACK
// Do returns nil although nothing was written. write must return the errors of its
// statements: after one, PostgreSQL rolls back at the commit, unless a savepoint was
// restored. Drivers report that differently, so that Do returns ErrIndeterminate, although
// nothing was written.
//
// Reads in write are guarded, too. Do costs the two round trips of a transaction, one for
// [SQL.Check], and those of write.
func (s SQL) Do(ctx context.Context, db *sql.DB, resource string, generation leasehold.Generation, write func(*sql.Tx) error) error {
	if _, err := s.validate(resource, generation); err != nil {
		return err
	}
	tx, err := s.begin(ctx, db, resource, generation)
	if err != nil {
		return err
	}
	// No effect after Commit. If the connection is lost, the database rolls back.
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

// begin returns a transaction that has passed Check. It retries after a conflict, because the
// application's part has not run yet.
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
		_ = tx.Rollback() // or the database does when the connection is lost
		if postgres.StateOf(err) != postgres.SerializationFailure || attempt == checkAttempts {
			return nil, err
		}
	}
}
