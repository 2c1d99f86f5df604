package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// SQLSTATE codes, and classes of codes, which are their first two characters.
const (
	undefinedTable       = "42P01"
	serializationFailure = "40001"
	completionUnknown    = "40003"

	classData       = "22" // an invalid value
	classConstraint = "23"
	classRollback   = "40" // a conflict: this transaction was aborted
	classAccess     = "42" // a syntax error, no such table, no permission
)

// stateOf returns the SQLSTATE of a database error, or "". The errors of pgx and of lib/pq
// have the method.
func stateOf(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// isConflict reports whether the database aborted a transaction because of another one:
// nothing was written, and a retry may succeed.
func isConflict(err error) bool {
	state := stateOf(err)
	return strings.HasPrefix(state, classRollback) && state != completionUnknown
}

// unavailable is the error of a transaction of which nothing was written.
func unavailable(resource string, err error) error {
	if isConflict(err) {
		return leasehold.Errorf(token.Op, leasehold.ErrUnavailable, resource, "the transaction conflicts with another one, and nothing was written: %w", err)
	}
	return token.Unwritten(leasehold.ErrUnavailable, resource, err)
}

// checkFailed is the error of a Check whose statement failed.
func checkFailed(resource, table string, err error) error {
	state := stateOf(err)
	switch {
	case state == undefinedTable:
		return leasehold.Errorf(token.Op, leasehold.ErrNotFound, resource, "create the table %s with the statement that Schema returns: %w", table, err)
	case strings.HasPrefix(state, classAccess), strings.HasPrefix(state, classData):
		return leasehold.Errorf(token.Op, leasehold.ErrInvalid, resource, "%w", err)
	}
	return unavailable(resource, err)
}

// writeFailed is the error of the application's part of a transaction: its own, but a
// conflict has a kind, so that it is retried.
func writeFailed(resource string, err error) error {
	if isConflict(err) && leasehold.KindOf(err) == leasehold.Other {
		return unavailable(resource, err)
	}
	return err
}

// commitFailed is the error of a commit that failed or had no response.
func commitFailed(ctx context.Context, resource string, err error) error {
	switch {
	case isConflict(err):
		return unavailable(resource, err)
	case strings.HasPrefix(stateOf(err), classConstraint): // a deferred one
		return token.Unwritten(leasehold.Other, resource, err)
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		err = fmt.Errorf("write has ended the transaction, which Do must end: %w", err)
	}
	return token.Unknown(resource, err)
}
