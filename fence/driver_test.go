package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
)

// A script is a driver, a connection and a transaction that do as they are told:
// for errors that a real database cannot reproduce.
type script struct {
	begin, query, commit error
	queries              int
	conflicts            int // the number of queries that fail first
}

// state is an error with a SQLSTATE, like those of pgx and lib/pq.
type state string

func (s state) Error() string    { return "SQLSTATE " + string(s) }
func (s state) SQLState() string { return string(s) }

func (s *script) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *script) Driver() driver.Driver                        { return nil }
func (s *script) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s *script) Close() error                                 { return nil }
func (s *script) Begin() (driver.Tx, error)                    { return s, s.begin }
func (s *script) Commit() error                                { return s.commit }
func (s *script) Rollback() error                              { return nil }

func (s *script) QueryContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	if s.queries++; s.queries <= s.conflicts {
		return nil, state("40001")
	}
	return &row{args[1].Value}, s.query
}

// row is a result with one row, the generation of the query.
type row struct{ generation any }

func (r *row) Columns() []string { return []string{"generation"} }
func (r *row) Close() error      { return nil }

func (r *row) Next(dest []driver.Value) error {
	if r.generation == nil {
		return io.EOF
	}
	dest[0], r.generation = r.generation, nil
	return nil
}

func TestErrors(t *testing.T) {
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		script  script
		kind    leasehold.Kind
		unknown bool
		want    string
	}{
		"no connection":         {script{begin: lost}, leasehold.ErrUnavailable, false, "nothing was written"},
		"lost before the check": {script{query: lost}, leasehold.ErrUnavailable, false, "nothing was written"},
		"no table":              {script{query: state("42P01")}, leasehold.ErrNotFound, false, "Schema"},
		"no permission":         {script{query: state("42501")}, leasehold.ErrInvalid, false, "42501"},
		"a bad value":           {script{query: state("22021")}, leasehold.ErrInvalid, false, "22021"},
		"a conflict that stays": {script{query: state("40001")}, leasehold.ErrUnavailable, false, "conflicts with another"},
		"a replica":             {script{query: state("25006")}, leasehold.ErrUnavailable, false, "nothing was written"},
		"wrapped":               {script{query: fmt.Errorf("driver: %w", state("42P01"))}, leasehold.ErrNotFound, false, "Schema"},
		"lost at the commit":    {script{commit: lost}, leasehold.ErrIndeterminate, true, "may have been written"},
		"bad connection":        {script{commit: driver.ErrBadConn}, leasehold.ErrIndeterminate, true, "may have been written"},
		"a late conflict":       {script{commit: state("40001")}, leasehold.ErrUnavailable, false, "nothing was written"},
		"a deadlock":            {script{commit: state("40P01")}, leasehold.ErrUnavailable, false, "nothing was written"},
		"completion unknown":    {script{commit: state("40003")}, leasehold.ErrIndeterminate, true, "may have been written"},
		"shut down at commit":   {script{commit: state("57P01")}, leasehold.ErrIndeterminate, true, "may have been written"},
		"a constraint":          {script{commit: state("23505")}, leasehold.Other, false, "nothing was written"},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(&c.script)
			defer db.Close() //nolint:errcheck // never fails
			err := fence.SQL{}.Do(t.Context(), db, "alice", 7, func(*sql.Tx) error { return nil })
			fencetest.WantKind(t, err, c.kind, c.want)
			if errors.Is(err, leasehold.ErrIndeterminate) != c.unknown {
				t.Errorf("error %v: unknown %t, want %t", err, !c.unknown, c.unknown)
			}
		})
	}
}

// A conflict before the application's part is retried up to checkAttempts times.
func TestCheckConflictsAreRetried(t *testing.T) {
	for conflicts, want := range map[int]leasehold.Kind{0: leasehold.Other, 4: leasehold.Other, 5: leasehold.ErrUnavailable} {
		s := &script{conflicts: conflicts}
		db := sql.OpenDB(s)
		calls := 0
		err := fence.SQL{}.Do(t.Context(), db, "alice", 7, func(*sql.Tx) error {
			calls++
			return nil
		})
		if leasehold.KindOf(err) != want || calls != 1 && want == leasehold.Other {
			t.Errorf("%d conflicts: error %v, %d calls", conflicts, err, calls)
		}
		if most := min(conflicts+1, 5); s.queries != most {
			t.Errorf("%d conflicts: %d attempts, want %d", conflicts, s.queries, most)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If write ends the transaction, the error is indeterminate.
func TestWriteEndsTheTransaction(t *testing.T) {
	for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		db := sql.OpenDB(&script{})
		err := fence.SQL{}.Do(t.Context(), db, "alice", 7, end)
		if fencetest.WantKind(t, err, leasehold.ErrIndeterminate, "ended the transaction"); !errors.Is(err, leasehold.ErrIndeterminate) {
			t.Errorf("%s: %v, want ErrIndeterminate", name, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTableNames(t *testing.T) {
	for table, ok := range map[string]bool{
		"": true, "fence": true, "app.fence": true, "_1": true, "Fence_2": true, strings.Repeat("x", 63): true,
		"1fence": false, "a.b.c": false, ".fence": false, "app.": false, "my fence": false, `"fence"`: false,
		"fence;": false, "fence--": false, "fénce": false, "fence\n": false, strings.Repeat("x", 64): false,
		strings.Repeat("; ", 1000): false,
		"pg_temp.f":                false, "PG_Temp.f": false, "pg_temp_3.f": false, "pg_catalog.f": false, "pg_temp": true, "app.pg_f": true,
	} {
		guard := fence.SQL{Table: table}
		_, err := guard.Schema()
		if (err == nil) != ok {
			t.Errorf("%q: %v", table, err)
		}
		if ok {
			continue
		}
		fencetest.WantKind(t, err, leasehold.ErrInvalid)
		if len(err.Error()) > 250 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		db := sql.OpenDB(&script{begin: errors.New("asked the database")})
		fencetest.WantKind(t, guard.Do(t.Context(), db, "alice", 7, nil), leasehold.ErrInvalid)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
