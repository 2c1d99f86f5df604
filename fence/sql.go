package fence

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/postgres"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// DefaultTable is the default of SQL.Table.
const DefaultTable = "leasehold_fence"

// SQL guards writes to PostgreSQL. The zero SQL is ready to use. It has no state and is safe
// for concurrent use, with any number of databases.
type SQL struct {
	// Table stores the highest generation of each resource. Default DefaultTable. It may
	// have a schema, "app.fence"; without one it is found on the search_path. Generations
	// of different namespaces are unrelated: give each namespace its own table, or different
	// resources.
	Table string

	// Isolation is the isolation level of Do's transactions. Default: the database's,
	// normally read committed.
	Isolation sql.IsolationLevel
}

// A Tx is an [*sql.Tx], or a type that embeds one. [*sql.DB] does not implement it: Check
// would be a transaction of its own there, and lock nothing.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Schema returns the statement that creates the table if it does not exist.
//
// Resources are compared byte by byte, so that a new version of the system's collations
// cannot corrupt the index, and with it the fence.
func (s SQL) Schema() (string, error) {
	table, err := s.table()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
	resource text COLLATE "C" PRIMARY KEY,
	generation bigint NOT NULL,
	seen timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50)`, table), nil
}

func (s SQL) table() (string, error) {
	if s.Table == "" {
		return DefaultTable, nil
	}
	return s.Table, postgres.CheckTable(token.Op, s.Table)
}

// validate returns the table, or an error for an invalid argument.
func (s SQL) validate(resource string, generation leasehold.Generation) (table string, err error) {
	if table, err = s.table(); err != nil {
		return "", err
	}
	return table, token.Validate(resource, generation)
}

// check raises the generation of a resource and returns it, or the higher stored one. One
// statement is atomic.
//
// It updates the row even if the generation is equal, so that it conflicts with the next
// owner's. At repeatable read, a transaction that only waits for a lock would continue with a
// snapshot from before the wait, without the writes of the other transaction. If the row has
// changed, PostgreSQL aborts it.
const check = `INSERT INTO %s AS known (resource, generation) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET generation = GREATEST(known.generation, EXCLUDED.generation), seen = now()
RETURNING generation`

// Check is the first statement of a guarded transaction. If it returns nil, no later owner of
// the resource has written, and none can until the transaction ends: a later owner's Check
// waits for the lock of this one. If it fails, with [leasehold.ErrStale] if a later owner has
// written, the transaction must be rolled back.
//
// It costs one statement, which updates one row. Transactions on one resource are serialized.
// A transaction that checks several resources must do so in a fixed order, to avoid
// deadlocks.
//
// At repeatable read and above, a transaction that had to wait fails with
// [leasehold.ErrUnavailable], although its lease may be valid. The next attempt finds that
// out; [SQL.Do] makes it.
func (s SQL) Check(ctx context.Context, tx Tx, resource string, generation leasehold.Generation) error {
	table, err := s.validate(resource, generation)
	if err != nil {
		return err
	}
	var known int64
	if err := tx.QueryRowContext(ctx, fmt.Sprintf(check, table), resource, int64(generation)).Scan(&known); err != nil {
		return checkFailed(resource, table, err)
	}
	if known := leasehold.Generation(known); known > generation {
		return token.Stale(resource, generation, known)
	}
	return nil
}
