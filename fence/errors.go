package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/postgres"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// unavailable is the error of a transaction of which nothing was written.
func unavailable(resource string, err error) error {
	if postgres.IsConflict(err) {
		return leasehold.Errorf(token.Op, leasehold.ErrUnavailable, resource, "the transaction conflicts with another one, and nothing was written: %w", err)
	}
	return token.Unwritten(leasehold.ErrUnavailable, resource, err)
}

// checkFailed is the error of a Check whose statement failed.
func checkFailed(resource, table string, err error) error {
	switch {
	case postgres.StateOf(err) == postgres.UndefinedTable:
		return leasehold.Errorf(token.Op, leasehold.ErrNotFound, resource, "create the table %s with the statement that Schema returns: %w", table, err)
	case postgres.Is(err, postgres.ClassAccess, postgres.ClassData):
		return leasehold.Errorf(token.Op, leasehold.ErrInvalid, resource, "%w", err)
	}
	return unavailable(resource, err)
}

// writeFailed is the error of the application's part of a transaction: its own, but a
// conflict has a kind, so that it is retried.
func writeFailed(resource string, err error) error {
	if postgres.IsConflict(err) && leasehold.KindOf(err) == leasehold.Other {
		return unavailable(resource, err)
	}
	return err
}

// commitFailed is the error of a commit that failed or had no response.
func commitFailed(ctx context.Context, resource string, err error) error {
	switch {
	case postgres.IsConflict(err):
		return unavailable(resource, err)
	case postgres.Is(err, postgres.ClassConstraint): // a deferred one
		return token.Unwritten(leasehold.Other, resource, err)
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		err = fmt.Errorf("write has ended the transaction, which Do must end: %w", err)
	}
	return token.Unknown(resource, err)
}
