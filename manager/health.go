package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/internal/mono"
)

// serveHealth answers those who ask by HTTP whether this manager lives and
// whether it can serve.
func (m *Manager) serveHealth() {
	if m.cfg.Health == nil {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", m.healthz)
	mux.HandleFunc("GET /readyz", m.readyz)
	m.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	m.running.Go(func() {
		if err := m.http.Serve(m.cfg.Health); !errors.Is(err, http.ErrServerClosed) && m.ctx.Err() == nil {
			m.log.Warn("health checks are no longer answered", "why", err)
		}
	})
}

// healthz: the machine runs. If it does not answer within a second the process
// is stuck, and better started anew.
func (m *Manager) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := m.driver.Do(ctx, func(mono.Instant) {}); err != nil {
		http.Error(w, "the manager does not answer itself: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	answerPlain(w, "ok")
}

// readyz: there is a leader, this manager or another, and so it can serve.
func (m *Manager) readyz(w http.ResponseWriter, _ *http.Request) {
	ready, leader := m.leading.readiness()
	switch {
	case !ready && leader == "":
		http.Error(w, "no manager leads: the store may be out of reach, or an election is under way", http.StatusServiceUnavailable)
	case !ready:
		http.Error(w, "this manager leads and is reading its namespaces", http.StatusServiceUnavailable)
	default:
		answerPlain(w, "ok, led by "+string(leader))
	}
}

func answerPlain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintln(w, text) // a client that is gone needs no answer
}
