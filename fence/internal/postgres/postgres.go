// Package postgres has the common code of the packages that use PostgreSQL: names of tables, and kinds of errors by
// SQLSTATE, which both pgx and lib/pq report.
package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// SQLSTATE codes, and classes of codes, which are their first two characters.
const (
	UndefinedTable       = "42P01"
	DuplicateTable       = "42P07"
	DuplicateObject      = "42710"
	SerializationFailure = "40001"
	CompletionUnknown    = "40003"

	ClassData       = "22" // an invalid value
	ClassConstraint = "23"
	ClassRollback   = "40" // a conflict: this transaction was aborted
	ClassAccess     = "42" // a syntax error, no such table, no permission
	ClassResources  = "53" // no memory, no disk space, too many connections
	ClassLimit      = "54"
	ClassState      = "55" // a lock that is not available, for instance
)

// StateOf returns the SQLSTATE of a database error, or "". The errors of pgx and of lib/pq
// have the method.
func StateOf(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// Is reports whether an error is in one of these classes.
func Is(err error, classes ...string) bool {
	state := StateOf(err)
	return len(state) > 2 && slices.Contains(classes, state[:2])
}

// IsConflict reports whether the database aborted a transaction because of another one:
// nothing was written, and a retry may succeed.
func IsConflict(err error) bool {
	return Is(err, ClassRollback) && StateOf(err) != CompletionUnknown
}

// names matches table names that need no quotes.
var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// CheckTable returns an error for a table's name that needs quotes, or that not all connections share.
func CheckTable(op, table string) error {
	if !names.MatchString(table) {
		return leasehold.Errorf(op, leasehold.ErrInvalid, fmt.Sprintf("%.64s", table),
			"a table name consists of letters, digits and underscores, with an optional schema before a dot")
	}
	if schema, _, ok := strings.Cut(strings.ToLower(table), "."); ok && strings.HasPrefix(schema, "pg_") {
		return leasehold.Errorf(op, leasehold.ErrInvalid, table,
			"the schema is a system schema, and pg_temp is private to a connection: choose one that all writers share")
	}
	return nil
}
