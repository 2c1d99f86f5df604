//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
)

// A late write waits for the lock while the new owner commits.
func testWaitingWriter(t *testing.T, w world) {
	w.mustAppend(t, 7, "a")
	successor := w.holding(t, 8)
	late := make(chan error, 1)
	go func() { late <- w.Append(t.Context(), "alice", 7, "a-late") }()
	w.awaitWaiting(t)
	w.finish(t, successor, "b")
	fencetest.WantKind(t, <-late, leasehold.ErrStale)
	w.wantLines(t, "a b")
}

// The new owner waits for an earlier write, and then reads it.
func testWaitingSuccessor(t *testing.T, w world) {
	w.mustAppend(t, 7, "a")
	early := w.holding(t, 7)
	lines := 0
	taken := make(chan error, 1)
	go func() {
		taken <- w.guard.Do(t.Context(), w.db, "alice", 8, func(tx *sql.Tx) error {
			return tx.QueryRowContext(t.Context(), w.sql("SELECT count(*) FROM %s_lines")).Scan(&lines)
		})
	}()
	w.awaitWaiting(t)
	w.finish(t, early, "a")
	if err := <-taken; err != nil || lines != 2 {
		t.Errorf("the new owner reads %d lines (%v), want both of the old one's", lines, err)
	}
	fencetest.WantKind(t, w.Append(t.Context(), "alice", 7, "a-late"), leasehold.ErrStale)
	w.wantLines(t, "a a")
}

// Writes of one owner are serialized, and all are accepted.
func testSameGeneration(t *testing.T, w world) {
	first := w.holding(t, 7)
	second := make(chan error, 1)
	go func() { second <- w.Append(t.Context(), "alice", 7, "second") }()
	w.awaitWaiting(t)
	w.finish(t, first, "first")
	if err := <-second; err != nil {
		t.Error(err)
	}
	w.wantLines(t, "first second")
}

// Transactions on different resources do not wait for each other.
func testNoWaiting(t *testing.T, w world) {
	w.holding(t, 7)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Append(ctx, "bob", 3, "b"); err != nil {
		t.Error(err)
	}
}

// The statement in the package's documentation deletes unused rows. Their resources are no longer
// protected.
func testForgotten(t *testing.T, w world) {
	const (
		age    = "UPDATE %s SET seen = now() - interval '31 days'"
		forget = "DELETE FROM %s WHERE seen < now() - interval '30 days'"
	)
	w.mustAppend(t, 8, "b")
	w.exec(t, forget)
	fencetest.WantKind(t, w.Append(t.Context(), "alice", 7, "a-late"), leasehold.ErrStale)
	w.exec(t, age)
	w.mustAppend(t, 8, "b") // stored again
	w.exec(t, forget)
	fencetest.WantKind(t, w.Append(t.Context(), "alice", 7, "a-late"), leasehold.ErrStale)
	w.exec(t, age)
	w.exec(t, forget)
	w.mustAppend(t, 7, "a-late")
	w.wantLines(t, "b b a-late")
}
