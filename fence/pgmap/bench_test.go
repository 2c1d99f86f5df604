//go:build unix

package pgmap_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

const benchRows, benchBatch = 10_000, 500

// BenchmarkWriteBehind compares the rows per second of write-behind with those of a bare batch upsert by the driver, with the
// same values and batches. They take turns.
func BenchmarkWriteBehind(b *testing.B) {
	db := open(b, realservice.StartPostgreSQL(b).DSN)
	store, _ := create(b, db)
	if _, err := db.ExecContext(b.Context(), `CREATE TABLE bare (name text COLLATE "C" PRIMARY KEY, value bytea) WITH (fillfactor = 70)`); err != nil {
		b.Fatal(err)
	}
	m, err := leasemap.New(leasemap.Config[string]{Store: store, WriteBehind: &leasemap.WriteBehind{
		Batch: benchBatch, Max: 2 * benchRows, OnLost: func(names []string, err error) { b.Error(names, err) },
	}}, holder{})
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, benchRows)
	for i := range names {
		names[i] = fmt.Sprintf("user-%06d", i)
	}
	var behind, bare time.Duration
	for turn := 0; b.Loop(); turn++ {
		value := fmt.Sprintf("%0100d", turn)
		begun := time.Now()
		for _, name := range names {
			if _, err := m.Set(b.Context(), name, value); err != nil {
				b.Fatal(err)
			}
		}
		if err := m.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		behind += time.Since(begun)

		begun = time.Now()
		upsert(b, db, names, []byte(value))
		bare += time.Since(begun)
	}
	rows := float64(b.N * benchRows)
	b.ReportMetric(rows/behind.Seconds(), "behind-rows/s")
	b.ReportMetric(rows/bare.Seconds(), "bare-rows/s")
	b.ReportMetric(100*bare.Seconds()/behind.Seconds(), "%")
}

func upsert(b *testing.B, db *sql.DB, names []string, value []byte) {
	b.Helper()
	values := make([][]byte, benchBatch)
	for i := range values {
		values[i] = value
	}
	for at := 0; at < len(names); at += benchBatch {
		_, err := db.ExecContext(b.Context(), `INSERT INTO bare SELECT * FROM unnest($1::text[], $2::bytea[])
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value`, names[at:at+benchBatch], values)
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad is the load of a value that is not in memory.
func BenchmarkLoad(b *testing.B) {
	store, _ := create(b, open(b, realservice.StartPostgreSQL(b).DSN))
	for n := uint64(1); b.Loop(); n++ {
		if _, err := store.Load(b.Context(), fmt.Sprint(n%1000), leasemap.Version{Generation: 1, Number: n}); err != nil {
			b.Fatal(err)
		}
	}
}

// holder is a Checker that holds all keys.
type holder struct{}

func (holder) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: 1}, Key: key}, true
}
func (holder) Held(owner.Lease) bool                      { return true }
func (holder) Suspended(leasehold.Key) bool               { return false }
func (holder) Await(context.Context, leasehold.Key) error { return nil }
