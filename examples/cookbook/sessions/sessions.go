// Package sessions is a session store for web frontends. A frontend creates the random ID of a session, keeps it in a
// cookie, and calls the server that owns the ID. Sessions are in memory and in PostgreSQL: a crash loses none.
package sessions

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/pgmap"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

const (
	idle    = 30 * time.Minute // a session ends after this time without a request
	maxSize = 16 << 10
)

// A Store is a server that has sessions in memory, and saves each change before it responds.
type Store struct{ sessions *leasemap.Map[[]byte] }

// Join joins a namespace, with the sessions in a table of the database.
func Join(ctx context.Context, as owner.Config, db *sql.DB) (*Store, error) {
	table := pgmap.Open(db, "sessions")
	if err := table.Create(ctx); err != nil {
		return nil, err
	}
	sessions, err := leasemap.Join(ctx, as, leasemap.Config[[]byte]{TTL: idle, Store: table})
	return &Store{sessions}, err
}

// Close moves the sessions to other servers. Serve until it returns.
func (s *Store) Close(ctx context.Context) error { return s.sessions.Close(ctx) }

// get returns a session and restarts its idle time. It fails with ErrNotFound if there is none.
func (s *Store) get(ctx context.Context, id string) (data []byte, err error) {
	_, err = s.sessions.Do(ctx, id, func(e *leasemap.Entry[[]byte]) error {
		if !e.Version.Exists() {
			return leasehold.ErrNotFound
		}
		data = e.Value
		e.Touch()
		return nil
	})
	return data, err
}

// Handler serves PUT, GET and DELETE /sessions/{id}.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSize))
		if err == nil {
			_, err = s.sessions.Set(r.Context(), r.PathValue("id"), data)
		}
		leasehttp.WriteError(w, err)
	})
	mux.HandleFunc("GET /sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		data, err := s.get(r.Context(), r.PathValue("id"))
		if !leasehttp.WriteError(w, err) {
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(data)
		}
	})
	mux.HandleFunc("DELETE /sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		leasehttp.WriteError(w, s.sessions.Delete(r.Context(), r.PathValue("id")))
	})
	return mux
}
