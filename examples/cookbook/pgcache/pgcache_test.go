//go:build unix

package pgcache

import (
	"context"
	"database/sql"
	"net/http"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/owner"
)

// open opens the database, with the tables.
func open(ctx context.Context, dsn string) (*sql.DB, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	schema, err := fence.SQL{}.Schema()
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{schema, Schema} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return db, nil
}

// TestCache: gets after the first do not use the database. A restart and a crash lose nothing, and a late write of an
// earlier owner is rejected.
func TestCache(t *testing.T) {
	server := realservice.StartPostgreSQL(t)
	var db *sql.DB
	join := func(ctx context.Context, as owner.Config) (_ *Cache, err error) {
		if db == nil { // opened here, its goroutines are on virtual time
			if db, err = open(ctx, server.DSN); err != nil {
				return nil, err
			}
		}
		return Join(ctx, as, db)
	}
	recipetest.Run(t, join, func(t *testing.T, p *recipetest.Pair) {
		defer func() { _ = db.Close() }()
		const path = "/items/kettle"
		want := func(status int, value string) { t.Helper(); p.Want(status, value, http.MethodGet, path, "") }
		put := func(value string) { t.Helper(); p.Want(http.StatusOK, "", http.MethodPut, path, value) }
		change := func(value string) { // behind the cache
			t.Helper()
			if _, err := db.ExecContext(t.Context(), "UPDATE items SET value = $1", value); err != nil {
				t.Fatal(err)
			}
		}
		want(http.StatusNotFound, "")
		put("10")
		change("11")
		want(http.StatusOK, "10") // from the cache
		p.Restart("kettle")
		want(http.StatusOK, "11") // read under the new lease
		put("12")
		p.Crash("kettle")
		want(http.StatusOK, "12")

		err := fence.SQL{}.Do(t.Context(), db, "kettle", leasehold.Generation(1), func(*sql.Tx) error { return nil })
		if leasehold.KindOf(err) != leasehold.ErrStale {
			t.Errorf("a late write: %v, want ErrStale", err)
		}
	})
}
