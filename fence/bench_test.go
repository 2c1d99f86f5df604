//go:build unix

package fence_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
)

// BenchmarkDo compares a transaction that writes one row with the same through the
// guard. They take turns, so that both meet the same moods of the computer.
func BenchmarkDo(b *testing.B) {
	db := openPostgreSQL(b, realservice.StartPostgreSQL(b).DSN)
	w := newWorld(b, db, sql.LevelDefault)
	write := w.adding(b.Context(), "alice", "x")
	var plain, guarded time.Duration
	for b.Loop() {
		began := time.Now()
		tx, err := db.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := write(tx); err != nil {
			b.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
		plain += time.Since(began)

		began = time.Now()
		if err := w.guard.Do(b.Context(), db, "alice", 7, write); err != nil {
			b.Fatal(err)
		}
		guarded += time.Since(began)
	}
	b.ReportMetric(float64(plain.Microseconds())/float64(b.N), "plain-µs/op")
	b.ReportMetric(float64(guarded.Microseconds())/float64(b.N), "guarded-µs/op")
}
