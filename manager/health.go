package manager

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
)

// HealthHandler serves health checks: /healthz for liveness, /readyz for readiness and, in a
// diskless group, /restartz: whether one manager may be stopped.
func (m *Manager) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", m.healthz)
	mux.HandleFunc("GET /readyz", m.readyz)
	if m.group != nil {
		mux.HandleFunc("GET /restartz", m.restartz)
	}
	return mux
}

// healthz succeeds if the machine runs a function within a second. Otherwise the process is stuck
// and should be restarted.
func (m *Manager) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := m.driver.Do(ctx, func(mono.Instant) {}); err != nil {
		http.Error(w, "the manager's event loop is stuck: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	answerPlain(w, "ok")
}

// readyz succeeds if a leader is known, this manager or another. In a diskless group this manager
// must also vote and have the catalog. Faults of the other managers are only reported: a load
// balancer must not remove this manager because another is down.
func (m *Manager) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := m.unavailableReason(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	_, leader := m.leadership.readiness()
	answer := "ok, led by " + string(leader)
	if m.group != nil {
		if nonVoters := m.group.NonVoters(); len(nonVoters) > 0 {
			answer += "; " + memcatalog.Describe(nonVoters)
		}
	}
	answerPlain(w, answer)
}

// restartz succeeds if the remaining managers can elect a leader after any one is stopped: see
// [memcatalog.Group.StopRisk].
func (m *Manager) restartz(w http.ResponseWriter, _ *http.Request) {
	if why := m.StopRisk(); why != "" {
		http.Error(w, "do not stop another manager: "+why, http.StatusServiceUnavailable)
		return
	}
	answerPlain(w, "ok, one manager may be stopped")
}

// NotReady returns why this manager cannot serve; "" if it can: a leader is known, and in a diskless
// group this manager votes and has the namespaces.
func (m *Manager) NotReady() string { return m.unavailableReason() }

// StopRisk returns why no manager may be stopped; "" if the others can elect a leader without any one: see
// [memcatalog.Group.StopRisk]. With a store it is the same as NotReady.
func (m *Manager) StopRisk() string {
	why := m.unavailableReason()
	if why == "" && m.group != nil {
		why = m.group.StopRisk()
	}
	return why
}

// unavailableReason returns why this manager cannot serve; "" if it can.
func (m *Manager) unavailableReason() string {
	ready, leader := m.leadership.readiness()
	switch {
	case ready:
		return ""
	case leader == "" && m.group == nil:
		return "no manager leads: an election is under way, or the store is unreachable"
	case leader == "":
		return m.noLeaderReason()
	case m.group == nil || string(leader) == m.cfg.Advertise:
		return m.takeoverReason()
	}
	return "this manager is not ready, do not stop another: " + cmp.Or(m.group.NotReadyReason(), "it is about to become ready")
}

func answerPlain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintln(w, text) // fails only if the client has disconnected
}
