// Package pgcache is a write-through cache in front of a table in PostgreSQL. It never returns a value older than the
// last acknowledged write: one server owns each row, and the database rejects writes of earlier owners.
package pgcache

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// Schema creates the table. That of the fence is from fence.SQL.Schema.
const Schema = "CREATE TABLE IF NOT EXISTS items (name text PRIMARY KEY, value text NOT NULL)"

// A Cache is a server that caches the rows that it owns.
type Cache struct {
	values *leasemap.Map[string]
	db     *sql.DB
}

// Join joins a namespace. Only servers of this namespace may write to the table.
func Join(ctx context.Context, as owner.Config, db *sql.DB) (*Cache, error) {
	values, err := leasemap.Join(ctx, as, leasemap.Config[string]{})
	return &Cache{values, db}, err
}

// Close gives all rows to other servers. Serve until it returns.
func (c *Cache) Close(ctx context.Context) error { return c.values.Close(ctx) }

// get returns the value of a row. It fails with ErrNotFound if there is none.
func (c *Cache) get(ctx context.Context, name string) (value string, err error) {
	_, err = c.values.Do(ctx, name, func(e *leasemap.Entry[string]) error {
		if e.Version.Generation == e.Lease.Generation { // cached under this lease
			value = e.Value
			e.Keep()
			return nil
		}
		// A value from an earlier lease may be stale: its owner may have written since. After this fenced read, no
		// earlier owner can write.
		err := c.fenced(ctx, name, e, func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, "SELECT value FROM items WHERE name = $1", name).Scan(&e.Value)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return leasehold.ErrNotFound
		}
		value = e.Value
		return err
	})
	return value, err
}

// put writes a row, and then the cache.
func (c *Cache) put(ctx context.Context, name, value string) error {
	var unknown error
	_, err := c.values.Do(ctx, name, func(e *leasemap.Entry[string]) error {
		err := c.fenced(ctx, name, e, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO items VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value", name, value)
			return err
		})
		if errors.Is(err, leasehold.ErrIndeterminate) { // the commit may have happened
			unknown = err
			e.Delete() // the next get reads the row
			return nil
		}
		e.Value = value
		return err
	})
	return errors.Join(err, unknown)
}

// fenced runs a transaction with the generation of the lease as fencing token.
func (c *Cache) fenced(ctx context.Context, name string, e *leasemap.Entry[string], do func(*sql.Tx) error) error {
	err := fence.SQL{}.Do(ctx, c.db, name, e.Lease.Generation, do)
	if errors.Is(err, leasehold.ErrStale) {
		return leasehold.ErrNotOwner // a later owner has written; callers retry there
	}
	return err
}

// Handler serves GET and PUT /items/{name}.
func (c *Cache) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{name}", func(w http.ResponseWriter, r *http.Request) {
		value, err := c.get(r.Context(), r.PathValue("name"))
		if !leasehttp.WriteError(w, err) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, value)
		}
	})
	mux.HandleFunc("PUT /items/{name}", func(w http.ResponseWriter, r *http.Request) {
		value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err == nil {
			err = c.put(r.Context(), r.PathValue("name"), string(value))
		}
		leasehttp.WriteError(w, err)
	})
	return mux
}
