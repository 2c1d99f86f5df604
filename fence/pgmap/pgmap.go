package pgmap

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/postgres"
	"github.com/leasehold-dev/leasehold/leasemap"
)

const op = "pgmap"

// A Store is a table with the values of a map. It is safe for concurrent use.
type Store struct {
	db    *sql.DB
	table string
	bad   error // of the table's name
}

var _ leasemap.Store = (*Store)(nil)

// Open returns the store in a table, which may have a schema: "app.sessions". An invalid name is the error of
// every method. Each map needs a table of its own.
func Open(db *sql.DB, table string) *Store {
	return &Store{db, table, postgres.CheckTable(op, table)}
}

// Schema returns the statement that creates the table if it does not exist. Names are compared byte by byte, so that
// a new version of the system's collations cannot corrupt the index.
func (s *Store) Schema() (string, error) {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
	name text COLLATE "C" PRIMARY KEY,
	generation bigint NOT NULL, -- the token: that of the last owner that has used the name,
	number bigint NOT NULL,     -- and of its last call
	version text COLLATE "C",   -- of the value; null if there is none
	value bytea,
	expires timestamptz         -- of a row without a value, its last use
) WITH (fillfactor = 70)`, s.table), s.bad
}

// Create creates the table if it does not exist.
func (s *Store) Create(ctx context.Context) error {
	schema, err := s.Schema()
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, schema)
	if postgres.Is(err, postgres.ClassConstraint) || postgres.StateOf(err) == postgres.DuplicateTable { // created by another server meanwhile
		_, err = s.db.ExecContext(ctx, schema)
	}
	return err
}

// load raises the token in every case but a refusal, whose result has no row.
const load = `INSERT INTO %s AS known (name, generation, number, expires) VALUES ($1, $2, $3, now())
ON CONFLICT (name) DO UPDATE SET generation = EXCLUDED.generation, number = EXCLUDED.number,
	expires = CASE WHEN known.version IS NULL OR known.expires < now() THEN now() ELSE known.expires END
	WHERE (known.generation, known.number) <= (EXCLUDED.generation, EXCLUDED.number)
RETURNING version, value, (EXTRACT(EPOCH FROM expires - now()) * 1e6)::bigint`

// Load implements [leasemap.Store].
func (s *Store) Load(ctx context.Context, name string, token leasemap.Version) (leasemap.Record, error) {
	r := leasemap.Record{Name: name, Token: token}
	if s.bad != nil {
		return r, s.bad
	}
	var version sql.NullString
	var left sql.NullInt64                                                                                                                     // microseconds
	err := s.db.QueryRowContext(ctx, fmt.Sprintf(load, s.table), name, int64(token.Generation), number(token)).Scan(&version, &r.Value, &left) //nolint:gosec // generations are less than 2^63
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, leasehold.Errorf(op, leasehold.ErrStale, name, "generation %d has been superseded", token.Generation)
	case err != nil:
		return r, s.failed(err, leasehold.ErrUnavailable)
	case left.Valid:
		r.TTL = remaining(left.Int64)
	}
	return r, r.Version.UnmarshalText([]byte(version.String))
}

// remaining returns a TTL that is not 0, which would be none.
func remaining(micros int64) time.Duration {
	if micros > math.MaxInt64/int64(time.Microsecond) {
		return math.MaxInt64
	}
	if d := time.Duration(micros) * time.Microsecond; d != 0 {
		return d
	}
	return -1
}

// number returns the number of a token, which is less than 2^63.
func number(token leasemap.Version) int64 { return int64(min(token.Number, math.MaxInt64)) } //nolint:gosec // it fits

// save returns the names of the rows that it has written. The arrays are text, so that any driver can send them.
const save = `INSERT INTO %s AS known (name, generation, number, version, value, expires)
SELECT name, generation, number, version, value, now() + ttl * interval '1 microsecond'
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[], $6::bigint[])
	AS saved (name, generation, number, version, value, ttl)
ON CONFLICT (name) DO UPDATE SET generation = EXCLUDED.generation, number = EXCLUDED.number, version = EXCLUDED.version,
	value = EXCLUDED.value, expires = EXCLUDED.expires
	WHERE (known.generation, known.number) <= (EXCLUDED.generation, EXCLUDED.number)
RETURNING name`

// Save implements [leasemap.Store]. It is one statement, which is a transaction.
func (s *Store) Save(ctx context.Context, batch []leasemap.Record) (refused []string, err error) {
	if s.bad != nil {
		return nil, s.bad
	}
	conn, err := s.db.Conn(ctx) // a failure here is certain
	if err != nil {
		return nil, leasehold.Errorf(op, leasehold.ErrUnavailable, s.table, "%w", err)
	}
	defer conn.Close() //nolint:errcheck // returns it to the pool
	rows, err := conn.QueryContext(ctx, fmt.Sprintf(save, s.table), columns(batch)...)
	if err != nil {
		return nil, s.failed(err, leasehold.ErrIndeterminate)
	}
	defer rows.Close() //nolint:errcheck // Err has it
	saved := make(map[string]bool, len(batch))
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, s.failed(err, leasehold.ErrIndeterminate)
		}
		saved[name] = true
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed(err, leasehold.ErrIndeterminate)
	}
	for _, r := range batch {
		if !saved[r.Name] {
			refused = append(refused, r.Name)
		}
	}
	return refused, nil
}

// failed is the error of a statement. Without one of these codes, the connection may have been lost during the commit,
// which matters for a write.
func (s *Store) failed(err error, unknown leasehold.Kind) error {
	switch {
	case postgres.StateOf(err) == postgres.UndefinedTable:
		return leasehold.Errorf(op, leasehold.ErrNotFound, s.table, "create the table with the statement that Schema returns: %w", err)
	case postgres.Is(err, postgres.ClassData, postgres.ClassConstraint, postgres.ClassAccess):
		return leasehold.Errorf(op, leasehold.ErrInvalid, s.table, "%w", err)
	case postgres.IsConflict(err), postgres.Is(err, postgres.ClassResources, postgres.ClassLimit, postgres.ClassState):
		return leasehold.Errorf(op, leasehold.ErrUnavailable, s.table, "%w", err)
	}
	return leasehold.Errorf(op, unknown, s.table, "%w", err)
}

// Prune deletes rows whose value was deleted or has expired, and that no server has used for some time: longer than any
// process or statement can be delayed, a day for instance. It returns their number. Call it regularly, in any server.
func (s *Store) Prune(ctx context.Context, unused time.Duration) (int64, error) {
	if s.bad != nil {
		return 0, s.bad
	}
	result, err := s.db.ExecContext(ctx, fmt.Sprintf(`DELETE FROM %s
WHERE expires < now() - $1 * interval '1 microsecond'`, s.table), unused.Microseconds())
	if err != nil {
		return 0, s.failed(err, leasehold.ErrIndeterminate)
	}
	return result.RowsAffected()
}
