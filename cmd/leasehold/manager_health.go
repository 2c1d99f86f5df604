package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// healthServer answers health checks from the first moment on. A member that
// waits for its group lives, and whoever took it for dead and restarted it would
// keep the group from ever forming.
type healthServer struct {
	server  *http.Server // nil if health is served nowhere
	running sync.WaitGroup
	manager atomic.Pointer[http.Handler] // nil until there is one
	metrics http.Handler                 // answers GET /metrics
}

func serveHealth(at net.Listener, metrics http.Handler, log *slog.Logger) *healthServer {
	h := &healthServer{metrics: metrics}
	if at == nil {
		return h
	}
	h.server = &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	h.running.Go(func() {
		if err := h.server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("health checks are no longer answered", "why", err)
		}
	})
	return h
}

// ask lets the manager answer from now on.
func (h *healthServer) ask(manager http.Handler) { h.manager.Store(&manager) }

func (h *healthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		h.metrics.ServeHTTP(w, r)
		return
	}
	if m := h.manager.Load(); m != nil {
		(*m).ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte("ok, waiting for the store\n")) // a client that is gone needs no answer
		return
	}
	http.Error(w, "waiting for the store: it is out of reach, or a majority of the group has not started yet", http.StatusServiceUnavailable)
}

func (h *healthServer) stop() {
	if h.server != nil {
		_ = h.server.Close() // what it answers is over in an instant
		h.running.Wait()
	}
}
