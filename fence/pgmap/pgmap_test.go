//go:build unix

package pgmap_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/pgmap"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/leasemap/storetest"
)

// tables numbers the tables of tests.
var tables atomic.Int64

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // the server may have stopped
	return db
}

func create(t testing.TB, db *sql.DB) (s *pgmap.Store, table string) {
	t.Helper()
	table = fmt.Sprint("map_", tables.Add(1))
	s = pgmap.Open(db, table)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, table
}

// TestPostgreSQL runs all tests with one server.
func TestPostgreSQL(t *testing.T) {
	server := realservice.StartPostgreSQL(t)
	db := open(t, server.DSN)
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			db := open(t, server.DSN+" default_transaction_isolation='"+level+"'")
			storetest.Run(t, func(t *testing.T) leasemap.Store {
				s, _ := create(t, db)
				return s
			})
		})
	}
	t.Run("create", func(t *testing.T) { testCreate(t, db) })
	t.Run("prune", func(t *testing.T) { testPrune(t, db) })
	t.Run("readable", func(t *testing.T) { testReadable(t, db) })
	t.Run("errors", func(t *testing.T) { testErrors(t, db) })
	t.Run("long names", func(t *testing.T) { testLongTableNames(t, db) })
	t.Run("away", func(t *testing.T) {
		s, _ := create(t, db)
		server.Stop(t)
		_, err := s.Save(t.Context(), batch("x", 1))
		if kind := leasehold.KindOf(err); kind != leasehold.ErrUnavailable && kind != leasehold.ErrIndeterminate {
			t.Errorf("%v", err)
		}
		if _, err := s.Load(t.Context(), "x", leasemap.Version{Generation: 1}); err == nil || leasehold.KindOf(err) == leasehold.ErrStale {
			t.Errorf("%v", err)
		}
	})
}

func batch(name string, n uint64) []leasemap.Record {
	v := leasemap.Version{Generation: 1, Number: n}
	return []leasemap.Record{{Name: name, Token: v, Version: v, Value: []byte(`{"user":"alice"}`)}}
}

// Servers that start at once all create the table.
func testCreate(t *testing.T, db *sql.DB) {
	for range 20 {
		s := pgmap.Open(db, fmt.Sprint("map_", tables.Add(1)))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.Create(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// Prune deletes rows without a value, and keeps values.
func testPrune(t *testing.T, db *sql.DB) {
	s, table := create(t, db)
	over := batch("over", 1)
	over[0].TTL = time.Microsecond
	deleted := []leasemap.Record{{Name: "deleted", Token: leasemap.Version{Generation: 1, Number: 1}}}
	for _, b := range [][]leasemap.Record{batch("kept", 1), over, deleted} {
		if _, err := s.Save(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		unused time.Duration
		want   int64
	}{{time.Hour, 0}, {0, 2}} {
		if n, err := s.Prune(t.Context(), c.unused); err != nil || n != c.want {
			t.Errorf("%d rows unused for %v pruned, %v; want %d", n, c.unused, err, c.want)
		}
	}
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT string_agg(name, ' ') FROM "+table).Scan(&name); err != nil || name != "kept" {
		t.Errorf("%q are left, %v", name, err)
	}
}

// Other programs can query the values.
func testReadable(t *testing.T, db *sql.DB) {
	s, table := create(t, db)
	if _, err := s.Save(t.Context(), batch("x", 17)); err != nil {
		t.Fatal(err)
	}
	var user, version string
	query := "SELECT convert_from(value, 'UTF8')::json->>'user', version FROM " + table
	if err := db.QueryRowContext(t.Context(), query).Scan(&user, &version); err != nil || user != "alice" || version != "1.17" {
		t.Errorf("%q, version %s, %v", user, version, err)
	}
}

func testErrors(t *testing.T, db *sql.DB) {
	for table, kind := range map[string]leasehold.Kind{"missing": leasehold.ErrNotFound, `x"; DROP TABLE y; --`: leasehold.ErrInvalid} {
		s := pgmap.Open(db, table)
		if _, err := s.Save(t.Context(), batch("x", 1)); leasehold.KindOf(err) != kind {
			t.Errorf("Save in %s: %v", table, err)
		}
		if _, err := s.Load(t.Context(), "x", leasemap.Version{Generation: 1}); leasehold.KindOf(err) != kind {
			t.Errorf("Load in %s: %v", table, err)
		}
		if _, err := s.Prune(t.Context(), 0); leasehold.KindOf(err) != kind {
			t.Errorf("Prune in %s: %v", table, err)
		}
	}
	s, _ := create(t, db)
	_, err := s.Save(t.Context(), batch("a\x00b", 1))
	if leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a zero byte: %v", err)
	}
	changed, table := create(t, db)
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE "+table+" DROP COLUMN value"); err != nil {
		t.Fatal(err)
	}
	if _, err := changed.Save(t.Context(), batch("x", 1)); leasehold.KindOf(err) != leasehold.ErrUnavailable {
		t.Errorf("an error of the table, which can be repaired: %v", err)
	}
	if err := pgmap.Open(db, "no.table.name").Create(t.Context()); err == nil || !strings.Contains(err.Error(), "table name") {
		t.Error(err)
	}
}

// A table with a name of any length has its index.
func testLongTableNames(t *testing.T, db *sql.DB) {
	for _, table := range []string{strings.Repeat("a", 57), strings.Repeat("b", 58), strings.Repeat("c", 63), strings.Repeat("c", 62) + "d"} {
		if err := pgmap.Open(db, table).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		var indexes int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_indexes WHERE tablename = $1", table).Scan(&indexes); err != nil || indexes != 2 {
			t.Errorf("a table with a name of %d bytes has %d indexes, %v; want 2", len(table), indexes, err)
		}
	}
}
