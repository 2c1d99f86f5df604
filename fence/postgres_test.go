//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
)

// patience is the timeout of operations that take milliseconds.
const patience = 30 * time.Second

// levels are PostgreSQL's isolation levels.
var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// TestPostgreSQL runs all tests with one PostgreSQL server, at each isolation level.
func TestPostgreSQL(t *testing.T) {
	server := realservice.StartPostgreSQL(t)
	db := openPostgreSQL(t, server.DSN)
	for _, level := range levels {
		fresh := func(t *testing.T) world { return newWorld(t, db, level) }
		t.Run(level.String(), func(t *testing.T) {
			fencetest.Run(t, func(t *testing.T) fencetest.Guarded { return fresh(t) })
			for name, test := range map[string]func(*testing.T, world){
				"dead writer":         testDeadWriter,
				"waiting writer":      testWaitingWriter,
				"waiting successor":   testWaitingSuccessor,
				"same generation":     testSameGeneration,
				"no waiting":          testNoWaiting,
				"forgotten":           testForgotten,
				"rollback":            testRollback,
				"panic":               testPanic,
				"conflict in write":   testConflictInWrite,
				"conflict at commit":  testConflictAtCommit,
				"deferred constraint": testDeferredConstraint,
				"swallowed error":     testSwallowedError,
				"deadlock":            testDeadlock,
				"schema":              testSchema,
				"no table":            testNoTable,
				"no permission":       testNoPermission,
				"context while busy":  testContextWhileBusy,
			} {
				t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
			}
		})
	}
	t.Run("away", func(t *testing.T) { testAway(t, server, newWorld(t, db, sql.LevelDefault)) })
}

// openPostgreSQL opens the database with a lock timeout.
func openPostgreSQL(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", fmt.Sprintf("%s lock_timeout=%d", dsn, patience.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// A world has a table for the guard, and one with guarded lines.
type world struct {
	db    *sql.DB
	guard fence.SQL
}

// worlds numbers the worlds, for unique table names.
var worlds atomic.Int64

func newWorld(t testing.TB, db *sql.DB, level sql.IsolationLevel) world {
	t.Helper()
	w := world{db, fence.SQL{Table: fmt.Sprintf("fence_%d", worlds.Add(1)), Isolation: level}}
	schema, err := w.guard.Schema()
	if err != nil {
		t.Fatal(err)
	}
	w.exec(t, schema)
	w.exec(t, "CREATE TABLE %s_lines (id bigserial PRIMARY KEY, resource text, line text)")
	return w
}

// sql inserts the world's table into a statement.
func (w world) sql(statement string) string {
	return strings.ReplaceAll(statement, "%s", w.guard.Table)
}

func (w world) exec(t testing.TB, statement string) {
	t.Helper()
	if _, err := w.db.ExecContext(t.Context(), w.sql(statement)); err != nil {
		t.Fatalf("%s: %v", w.sql(statement), err)
	}
}

// adding returns a write that inserts a line.
func (w world) adding(ctx context.Context, resource, line string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, w.sql("INSERT INTO %s_lines (resource, line) VALUES ($1, $2)"), resource, line)
		return err
	}
}

// Append is for fencetest.
func (w world) Append(ctx context.Context, resource string, g leasehold.Generation, line string) error {
	return w.guard.Do(ctx, w.db, resource, g, w.adding(ctx, resource, line))
}

// Lines is for fencetest. Lines are numbered under the lock of Check, so that their numbers have
// the order of the transactions.
func (w world) Lines(t testing.TB, resource string) (lines []string) {
	t.Helper()
	rows, err := w.db.QueryContext(t.Context(), w.sql("SELECT line FROM %s_lines WHERE resource = $1 ORDER BY id"), resource)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err has it
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// mustAppend appends a line without error.
func (w world) mustAppend(t testing.TB, g leasehold.Generation, line string) {
	t.Helper()
	if err := w.Append(t.Context(), "alice", g, line); err != nil {
		t.Fatal(err)
	}
}

// wantLines checks the lines of alice, which have no spaces.
func (w world) wantLines(t testing.TB, want string) {
	t.Helper()
	if got := strings.Join(w.Lines(t, "alice"), " "); got != want {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// begin starts a transaction of the test.
func (w world) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := w.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: w.guard.Isolation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // of a failed test
	return tx
}

// holding starts a transaction that has passed Check for alice.
func (w world) holding(t testing.TB, g leasehold.Generation) *sql.Tx {
	t.Helper()
	tx := w.begin(t)
	if err := w.guard.Check(t.Context(), tx, "alice", g); err != nil {
		t.Fatal(err)
	}
	return tx
}

// finish inserts a line and commits.
func (w world) finish(t testing.TB, tx *sql.Tx, line string) {
	t.Helper()
	if err := w.adding(t.Context(), "alice", line)(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// awaitWaiting waits until a session is blocked on the guard's table.
func (w world) awaitWaiting(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for waiting := 0; waiting == 0; <-again.C {
		err := w.db.QueryRowContext(ctx, w.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO %s AS %'")).Scan(&waiting)
		if err != nil {
			t.Fatalf("no session waits: %v", err)
		}
	}
}
