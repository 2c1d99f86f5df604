package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/internal/mono"
)

// HealthHandler answers those who ask by HTTP whether the manager lives, at
// /healthz, and whether it can serve, at /readyz.
func (m *Manager) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", m.healthz)
	mux.HandleFunc("GET /readyz", m.readyz)
	return mux
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

// readyz: there is a leader, this manager or another, and so it can serve. Where
// nothing is on disk it also means that another may be stopped: see
// [diskless.Group.Informed].
func (m *Manager) readyz(w http.ResponseWriter, _ *http.Request) {
	ready, leader := m.leading.readiness()
	switch {
	case !ready && leader == "" && m.group == nil:
		http.Error(w, "no manager leads: the store may be out of reach, or an election is under way", http.StatusServiceUnavailable)
	case !ready && leader == "":
		http.Error(w, "no manager leads: a majority may be out of reach, or they are about to agree on one", http.StatusServiceUnavailable)
	case !ready && string(leader) != m.cfg.Advertise:
		http.Error(w, "this manager has just started: it does not vote yet, or has not been told the namespaces; do not stop another", http.StatusServiceUnavailable)
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
