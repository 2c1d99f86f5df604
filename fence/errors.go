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

// What PostgreSQL calls the errors that we tell apart. A code has a class of two
// characters.
const (
	undefinedTable       = "42P01"
	serializationFailure = "40001"
	completionUnknown    = "40003"

	classData       = "22" // a value that cannot be
	classConstraint = "23"
	classRollback   = "40" // a conflict, in which this transaction was the one to give way
	classAccess     = "42" // a syntax error, no such table, no permission
)

// stateOf returns the SQLSTATE of an error, if it comes from the database. The
// errors of pgx and of lib/pq have the method.
func stateOf(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// gaveWay reports whether the database has undone a transaction because of
// another one, so that nothing was written and the next attempt may succeed.
func gaveWay(err error) bool {
	state := stateOf(err)
	return strings.HasPrefix(state, classRollback) && state != completionUnknown
}

// unavailable is the error of a transaction of which nothing was written.
func unavailable(resource string, err error) error {
	if gaveWay(err) {
		return leasehold.Errorf(token.Op, leasehold.ErrUnavailable, resource, "gave way to another transaction, and nothing was written: %w", err)
	}
	return token.Unwritten(leasehold.ErrUnavailable, resource, err)
}

// checkFailed is the error of a Check that the database could not answer.
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

// writeFailed is the error of the application's part of a transaction: its own,
// but for a conflict, which has a kind so that it is retried.
func writeFailed(resource string, err error) error {
	if gaveWay(err) && leasehold.KindOf(err) == leasehold.Other {
		return unavailable(resource, err)
	}
	return err
}

// commitFailed is the error of a transaction whose last word was not heard, or
// was not yes.
func commitFailed(ctx context.Context, resource string, err error) error {
	switch {
	case gaveWay(err):
		return unavailable(resource, err)
	case strings.HasPrefix(stateOf(err), classConstraint): // a deferred one
		return token.Unwritten(leasehold.Other, resource, err)
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		err = fmt.Errorf("the function has ended the transaction itself, which is for Do: %w", err)
	}
	return token.Unknown(resource, err)
}
