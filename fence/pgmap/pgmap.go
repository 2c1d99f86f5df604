package pgmap

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
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

var _ leasemap.AlarmStore = (*Store)(nil)

// Open returns the store in a table, which may have a schema: "app.sessions". An invalid name is the error of
// every method. Each map needs a table of its own.
func Open(db *sql.DB, table string) *Store {
	return &Store{db, table, postgres.CheckTable(op, table)}
}

// Schema returns the statements that create the table and its index if they do not exist. Names are compared byte by byte, so that
// a new version of the system's collations cannot corrupt the index.
func (s *Store) Schema() (string, error) {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (
	name text COLLATE "C" PRIMARY KEY,
	generation bigint NOT NULL, -- the token: that of the last owner that has used the name,
	number bigint NOT NULL,     -- and of its last call
	version text COLLATE "C",   -- of the value; null if there is none
	value bytea,
	expires timestamptz,        -- of a row without a value, its last use
	alarm timestamptz,
	key bigint                  -- of the name, minus 2^63
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS %s_alarm ON %s (alarm) WHERE alarm IS NOT NULL`, s.table, shorten(s.table[strings.LastIndexByte(s.table, '.')+1:]), s.table), s.bad
}

// shorten returns a table's name with room for a suffix: PostgreSQL truncates names to 63 bytes, so that an index would have
// the name of its table, and not be created.
func shorten(table string) string {
	const longest = 57
	if len(table) <= longest {
		return table
	}
	return fmt.Sprintf("%s_%08x", table[:longest-9], crc32.ChecksumIEEE([]byte(table)))
}

// Create executes Schema.
func (s *Store) Create(ctx context.Context) error {
	schema, err := s.Schema()
	if err != nil {
		return err
	}
	for range createAttempts {
		if _, err = s.db.ExecContext(ctx, schema); !createdMeanwhile(err) {
			break
		}
	}
	return err
}

// createAttempts is more than the objects that Schema creates: another server may create each at the same time.
const createAttempts = 5

// createdMeanwhile reports whether IF NOT EXISTS has failed because another session has created the object at the same time.
func createdMeanwhile(err error) bool {
	state := postgres.StateOf(err)
	return postgres.Is(err, postgres.ClassConstraint) || state == postgres.DuplicateTable || state == postgres.DuplicateObject
}

// load raises the token in every case but a refusal, whose result has no row.
const load = `INSERT INTO %s AS known (name, generation, number, expires) VALUES ($1, $2, $3, now())
ON CONFLICT (name) DO UPDATE SET generation = EXCLUDED.generation, number = EXCLUDED.number,
	expires = CASE WHEN known.version IS NULL OR known.expires < now() THEN now() ELSE known.expires END
	WHERE (known.generation, known.number) <= (EXCLUDED.generation, EXCLUDED.number)
RETURNING version, value, (EXTRACT(EPOCH FROM expires - now()) * 1e6)::bigint, alarm`

// Load implements [leasemap.Store].
func (s *Store) Load(ctx context.Context, name string, token leasemap.Version) (leasemap.Record, error) {
	r := leasemap.Record{Name: name, Token: token}
	if s.bad != nil {
		return r, s.bad
	}
	var version sql.NullString
	var alarm sql.NullTime
	var micros sql.NullInt64              // of the TTL
	generation := int64(token.Generation) //nolint:gosec // generations are less than 2^63
	err := s.db.QueryRowContext(ctx, fmt.Sprintf(load, s.table), name, generation, number(token)).Scan(&version, &r.Value, &micros, &alarm)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, leasehold.Errorf(op, leasehold.ErrStale, name, "generation %d has been superseded", token.Generation)
	case err != nil:
		return r, s.failed(err, leasehold.ErrUnavailable)
	case micros.Valid:
		r.TTL = remaining(micros.Int64)
	}
	r.Alarm = alarm.Time
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
const save = `INSERT INTO %s AS known (name, generation, number, version, value, expires, alarm, key)
SELECT name, generation, number, version, value, now() + ttl * interval '1 microsecond', alarm, key
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[], $6::bigint[], $7::timestamptz[], $8::bigint[])
	AS saved (name, generation, number, version, value, ttl, alarm, key)
ON CONFLICT (name) DO UPDATE SET generation = EXCLUDED.generation, number = EXCLUDED.number, version = EXCLUDED.version,
	value = EXCLUDED.value, expires = EXCLUDED.expires, alarm = EXCLUDED.alarm, key = EXCLUDED.key
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
	case postgres.Is(err, postgres.ClassData, postgres.ClassConstraint):
		return leasehold.Errorf(op, leasehold.ErrInvalid, s.table, "%w", err)
	case postgres.IsConflict(err), postgres.Is(err, postgres.ClassAccess, postgres.ClassResources, postgres.ClassLimit, postgres.ClassState):
		// That of a permission or a column concerns the table and not the values, which stay unsaved until it is repaired.
		return leasehold.Errorf(op, leasehold.ErrUnavailable, s.table, "%w", err)
	}
	return leasehold.Errorf(op, unknown, s.table, "%w", err)
}

// Due implements [leasemap.AlarmStore].
func (s *Store) Due(ctx context.Context, keys leasehold.Range, before time.Time, after string, limit int) (names []string, err error) {
	if s.bad != nil {
		return nil, s.bad
	}
	rows, err := s.db.QueryContext(ctx, fmt.Sprintf(`SELECT name FROM %s
WHERE alarm < $1 AND key BETWEEN $2 AND $3 AND name > $4 AND (expires IS NULL OR expires > now()) ORDER BY name LIMIT $5`, s.table), before, signed(keys.Start), signed(keys.Last()), after, limit)
	if err != nil {
		return nil, s.failed(err, leasehold.ErrUnavailable)
	}
	defer rows.Close() //nolint:errcheck // Err has it
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, s.failed(err, leasehold.ErrUnavailable)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed(err, leasehold.ErrUnavailable)
	}
	return names, nil
}

// signed returns a number that is ordered like a key.
func signed(key leasehold.Key) int64 { return int64(key ^ 1<<63) } //nolint:gosec // the order is kept

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
