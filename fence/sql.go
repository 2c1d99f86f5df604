package fence

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// DefaultTable is where generations are remembered unless SQL says otherwise.
const DefaultTable = "leasehold_fence"

// SQL guards writes to PostgreSQL. The zero SQL is ready to be used. It has no
// state: its methods may be called by many goroutines at once, and on many
// databases.
type SQL struct {
	// Table remembers the highest generation of each resource. Default
	// DefaultTable. It may have a schema, "app.fence", and without one it is looked
	// for on the search_path. Each namespace has its own generations: give each a
	// table of its own, or resources that differ.
	Table string

	// Isolation is that of Do's transactions. Default: the database's, which is
	// read committed unless it was told otherwise.
	Isolation sql.IsolationLevel
}

// A Tx is an [*sql.Tx], or something that embeds one. It is not satisfied by a
// pool of connections, where Check would lock nothing: its statement would be a
// transaction of its own.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Schema returns the statement that creates the table, unless it is there.
//
// The resource is compared byte by byte, so that a new version of the system's
// collations cannot break the index, and with it the fence.
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

// names are what can be written as a table without quotes.
var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

func (s SQL) table() (string, error) {
	if s.Table == "" {
		return DefaultTable, nil
	}
	if !names.MatchString(s.Table) {
		return "", leasehold.Errorf(token.Op, leasehold.ErrInvalid, fmt.Sprintf("%.64s", s.Table),
			"a table is named with letters, digits and underscores, and may have a schema before a dot")
	}
	if schema, _, ok := strings.Cut(strings.ToLower(s.Table), "."); ok && strings.HasPrefix(schema, "pg_") {
		return "", leasehold.Errorf(token.Op, leasehold.ErrInvalid, s.Table,
			"the schema is the system's, and what is in pg_temp no other connection sees: choose one that all writers share")
	}
	return s.Table, nil
}

// validate returns the table if everything that the caller says can be true.
func (s SQL) validate(resource string, generation leasehold.Generation) (table string, err error) {
	if table, err = s.table(); err != nil {
		return "", err
	}
	return table, token.Validate(resource, generation)
}

// check raises the generation of a resource and returns it, or the higher one
// that is known. It is one statement, so that nobody comes in between.
//
// It also updates a row whose generation stays, because an owner that comes next
// must collide with it. At repeatable read, one that waited for a mere lock would
// go on in a snapshot from before it waited, without what was written meanwhile;
// if the row has changed since, PostgreSQL does not let it.
const check = `INSERT INTO %s AS known (resource, generation) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET generation = GREATEST(known.generation, EXCLUDED.generation), seen = now()
RETURNING generation`

// Check is the first statement of a transaction that a lease allows. If it
// returns nil, no later owner of the resource has written, and none will before
// the transaction ends: a later owner's Check waits for this one's lock. If it
// fails, with [leasehold.ErrStale] if a later owner has written, the transaction
// must be rolled back.
//
// It costs one statement, which updates one row. Transactions on one resource
// wait for each other. One that checks several resources must do so in a fixed
// order, or the database ends one of those that wait for each other in a circle.
//
// At repeatable read and above, one that had to wait fails with
// [leasehold.ErrUnavailable], although nothing is wrong with the lease, and finds
// out at its next attempt: see [SQL.Do], which makes that attempt.
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
