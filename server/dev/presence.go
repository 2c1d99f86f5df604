package dev

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Server is a server of the example service, which is that of examples/presence: the statuses of users, in memory.
type Server struct {
	Name      string
	Namespace string
	Manager   string
}

// Run runs the server on a free port of this computer until ctx ends. Then its statuses move to the other servers.
func (s *Server) Run(ctx context.Context, log *slog.Logger) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	as := owner.Config{
		Namespace: leasehold.Namespace(s.Namespace), Managers: []string{s.Manager}, Addr: listener.Addr().String(),
		Name: leasehold.OwnerID(s.Name), Logger: log,
	}
	statuses, err := leasemap.Join(ctx, as, leasemap.Config[string]{})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: presence(statuses), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	closing, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(err, statuses.Close(closing), server.Close())
}

func presence(statuses *leasemap.Map[string]) http.Handler {
	const maxText = 1000
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxText))
		if err == nil {
			_, err = statuses.Set(r.Context(), r.PathValue("user"), string(text))
		}
		leasehttp.WriteError(w, err)
	})
	mux.HandleFunc("GET /status/{user}", func(w http.ResponseWriter, r *http.Request) {
		text, _, err := statuses.Get(r.PathValue("user"))
		if !leasehttp.WriteError(w, err) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, text)
		}
	})
	return mux
}
