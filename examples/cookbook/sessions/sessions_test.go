//go:build unix

package sessions

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold/examples/internal/recipetest"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/leasehold-dev/leasehold/owner"
)

// TestSessions: a session lasts while it is used. A restart and a crash of its server lose no change, and restore no
// session that has ended.
func TestSessions(t *testing.T) {
	server := realservice.StartPostgreSQL(t)
	var db *sql.DB
	join := func(ctx context.Context, as owner.Config) (_ *Store, err error) {
		if db == nil { // opened here, its goroutines are on virtual time
			if db, err = sql.Open("pgx", server.DSN); err != nil {
				return nil, err
			}
		}
		return Join(ctx, as, db)
	}
	recipetest.Run(t, join, func(t *testing.T, p *recipetest.Pair) {
		defer func() { _ = db.Close() }()
		const path = "/sessions/s1"
		want := func(status int, data string) { t.Helper(); p.Want(status, data, http.MethodGet, path, "") }
		set := func(data string, status int) { t.Helper(); p.Want(status, "", http.MethodPut, path, data) }
		set("alice", http.StatusOK)
		set(strings.Repeat("x", maxSize+1), http.StatusRequestEntityTooLarge)
		p.Advance(idle * 2 / 3)
		want(http.StatusOK, "alice")
		p.Advance(idle * 2 / 3)
		p.Restart("s1")
		want(http.StatusOK, "alice")
		p.Advance(idle)
		want(http.StatusNotFound, "")
		set("bob", http.StatusOK)
		p.Want(http.StatusOK, "", http.MethodDelete, path, "")
		p.Restart("s1")
		want(http.StatusNotFound, "")
		set("carol", http.StatusOK)
		set("dora", http.StatusOK)
		p.Crash("s1")
		want(http.StatusOK, "dora")
	})
}
