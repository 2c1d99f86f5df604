//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
)

var errChanged = errors.New("the application has changed its mind")

// nothing is a write without statements.
func nothing(*sql.Tx) error { return nil }

// A failed write is rolled back, including its generation.
func testRollback(t *testing.T, w world) {
	err := w.guard.Do(t.Context(), w.db, "alice", 9, func(tx *sql.Tx) error {
		if err := w.adding(t.Context(), "alice", "x")(tx); err != nil {
			return err
		}
		return errChanged
	})
	if err != errChanged { //nolint:errorlint // returned unchanged
		t.Errorf("error %v, want the application's own", err)
	}
	w.mustAppend(t, 7, "a")
	w.wantLines(t, "a")
}

func testPanic(t *testing.T, w world) {
	func() {
		defer func() {
			if recover() != "oops" {
				t.Error("the panic was recovered")
			}
		}()
		_ = w.guard.Do(t.Context(), w.db, "alice", 9, func(tx *sql.Tx) error {
			_ = w.adding(t.Context(), "alice", "x")(tx)
			panic("oops")
		})
	}()
	w.mustAppend(t, 7, "a") // neither locked nor rejected
	w.wantLines(t, "a")
}

// conflict runs write, which reads row 1 and updates another row, concurrently with a transaction
// that reads row 2 and updates row 1.
func (w world) conflict(t *testing.T, update string) error {
	w.exec(t, "CREATE TABLE %s_app (id int PRIMARY KEY, n int)")
	w.exec(t, "INSERT INTO %s_app VALUES (1, 0), (2, 0)")
	return w.guard.Do(t.Context(), w.db, "alice", 7, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(t.Context(), w.sql("SELECT n FROM %s_app WHERE id = 1")).Scan(&n); err != nil {
			return err
		}
		other := w.begin(t) // without the guard
		if _, err := other.ExecContext(t.Context(), w.sql("UPDATE %s_app SET n = (SELECT n FROM %s_app WHERE id = 2) + 1 WHERE id = 1")); err != nil {
			t.Error(err)
		}
		if err := other.Commit(); err != nil {
			t.Error(err)
		}
		_, err := tx.ExecContext(t.Context(), w.sql(update))
		return err
	})
}

func testConflictInWrite(t *testing.T, w world) {
	err := w.conflict(t, "UPDATE %s_app SET n = n + 1 WHERE id = 1")
	w.wantConflict(t, err, sql.LevelRepeatableRead)
}

// Each transaction reads what the other writes: detected only at serializable.
func testConflictAtCommit(t *testing.T, w world) {
	err := w.conflict(t, "UPDATE %s_app SET n = n + 1 WHERE id = 2")
	w.wantConflict(t, err, sql.LevelSerializable)
}

// wantConflict checks that the conflict is detected from an isolation level on.
func (w world) wantConflict(t *testing.T, err error, from sql.IsolationLevel) {
	t.Helper()
	if w.guard.Isolation < from {
		if err != nil {
			t.Error(err)
		}
		return
	}
	fencetest.WantKind(t, err, leasehold.ErrUnavailable, "conflicts with another", "nothing was written", "40001")
	fencetest.WantUnwritten(t, err)
	w.mustAppend(t, 6, "earlier") // the generation was not stored
}

func testDeferredConstraint(t *testing.T, w world) {
	w.exec(t, "CREATE TABLE %s_app (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
	err := w.guard.Do(t.Context(), w.db, "alice", 7, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), w.sql("INSERT INTO %s_app VALUES (1), (1)"))
		return err
	})
	fencetest.WantKind(t, err, leasehold.Other, "nothing was written", "23505")
	fencetest.WantUnwritten(t, err)
}

// If write ignores the error of a statement, nothing is written, and Do returns an error.
func testSwallowedError(t *testing.T, w world) {
	err := w.guard.Do(t.Context(), w.db, "alice", 9, func(tx *sql.Tx) error {
		if err := w.adding(t.Context(), "alice", "x")(tx); err != nil {
			return err
		}
		_, _ = tx.ExecContext(t.Context(), "SELECT 1/0") // the ignored error
		return nil
	})
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate)
	w.mustAppend(t, 7, "a")
	w.wantLines(t, "a")
}

// Two transactions lock two resources in opposite order: one is aborted.
func testDeadlock(t *testing.T, w world) {
	both := func(first, second string, meet func()) error {
		return w.guard.Do(t.Context(), w.db, first, 7, func(tx *sql.Tx) error {
			meet()
			return w.guard.Check(t.Context(), tx, second, 7)
		})
	}
	here, there := make(chan struct{}), make(chan struct{})
	other := make(chan error, 1)
	go func() { other <- both("bob", "alice", func() { close(there); <-here }) }()
	results := []error{both("alice", "bob", func() { <-there; close(here) }), <-other}
	if results[0] == nil && results[1] == nil {
		t.Error("no transaction was aborted")
	}
	for _, err := range results { // at stricter levels both may fail
		if err != nil {
			fencetest.WantKind(t, err, leasehold.ErrUnavailable, "conflicts with another", "nothing was written")
			fencetest.WantUnwritten(t, err)
		}
	}
}

func testSchema(t *testing.T, w world) {
	schema, err := w.guard.Schema()
	if err != nil {
		t.Fatal(err)
	}
	w.exec(t, schema) // again
	w.mustAppend(t, 7, "a")
	w.guard.Table = "public." + w.guard.Table
	err = w.guard.Do(t.Context(), w.db, "alice", 6, nothing)
	fencetest.WantKind(t, err, leasehold.ErrStale) // the same table
}

func testNoTable(t *testing.T, w world) {
	w.guard.Table = "nowhere"
	err := w.guard.Do(t.Context(), w.db, "alice", 7, func(*sql.Tx) error {
		t.Error("write was called")
		return nil
	})
	fencetest.WantKind(t, err, leasehold.ErrNotFound, "nowhere", "Schema", "42P01")
	w.guard.Table = "user" // a reserved word
	fencetest.WantKind(t, w.guard.Do(t.Context(), w.db, "alice", 7, nothing), leasehold.ErrInvalid, "42601")
}

func testNoPermission(t *testing.T, w world) {
	w.exec(t, "CREATE ROLE %s_stranger")
	tx := w.begin(t)
	if _, err := tx.ExecContext(t.Context(), w.sql("SET LOCAL ROLE %s_stranger")); err != nil {
		t.Fatal(err)
	}
	fencetest.WantKind(t, w.guard.Check(t.Context(), tx, "alice", 7), leasehold.ErrInvalid, "42501")
}

// The context ends during the wait for the lock, or in the application's part.
func testContextWhileBusy(t *testing.T, w world) {
	wantEnded := func(err error) {
		t.Helper()
		fencetest.WantKind(t, err, leasehold.ErrUnavailable, "nothing was written")
		fencetest.WantUnwritten(t, err)
	}
	held := w.holding(t, 7)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() { waiting <- w.Append(ctx, "alice", 7, "x") }()
	w.awaitWaiting(t)
	cancel()
	wantEnded(<-waiting)
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	wantEnded(w.guard.Do(ctx, w.db, "alice", 7, func(tx *sql.Tx) error {
		err := w.adding(ctx, "alice", "x")(tx)
		cancel()
		return err
	}))
	w.mustAppend(t, 6, "a")
	w.wantLines(t, "a")
}

// testAway is last: it stops the database.
func testAway(t *testing.T, server *realservice.PostgreSQL, w world) {
	err := w.guard.Do(t.Context(), w.db, "alice", 7, func(tx *sql.Tx) error {
		err := w.adding(t.Context(), "alice", "x")(tx)
		server.Stop(t)
		return err
	})
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate)
	err = w.Append(t.Context(), "alice", 7, "x")
	fencetest.WantKind(t, err, leasehold.ErrUnavailable, "nothing was written")
	fencetest.WantUnwritten(t, err)
	fencetest.WantKind(t, w.Append(t.Context(), "", 7, "x"), leasehold.ErrInvalid)
}
