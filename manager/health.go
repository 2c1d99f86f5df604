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

// HealthHandler answers those who ask by HTTP whether the manager lives, at
// /healthz, and whether it can serve, at /readyz; and in a group that keeps nothing on
// disk, whether a manager may be stopped, at /restartz.
func (m *Manager) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", m.healthz)
	mux.HandleFunc("GET /readyz", m.readyz)
	if m.group != nil {
		mux.HandleFunc("GET /restartz", m.restartz)
	}
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
// nothing is on disk it also means that this manager votes on who leads, and knows the
// namespaces. It does not depend on how the others are: who is asked by a load balancer
// or an orchestrator must not be taken out of service because another is down. What is
// wrong with them is only said.
func (m *Manager) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := m.notServableReason(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	_, leader := m.leadership.readiness()
	answer := "ok, led by " + string(leader)
	if m.group != nil {
		if mute := m.group.NonVoters(); len(mute) > 0 {
			answer += "; " + memcatalog.Describe(mute)
		}
	}
	answerPlain(w, answer)
}

// restartz: another manager, or this one, may be stopped, and those who are left agree
// on a leader: see [memcatalog.Group.StopRisk].
func (m *Manager) restartz(w http.ResponseWriter, _ *http.Request) {
	why := m.notServableReason()
	if why == "" {
		why = m.group.StopRisk()
	}
	if why != "" {
		http.Error(w, "do not stop another manager: "+why, http.StatusServiceUnavailable)
		return
	}
	answerPlain(w, "ok, one manager may be stopped")
}

// unreadiness says why this manager cannot serve; "" if it can.
func (m *Manager) notServableReason() string {
	ready, leader := m.leadership.readiness()
	switch {
	case ready:
		return ""
	case leader == "" && m.group == nil:
		return "no manager leads: the store may be out of reach, or an election is under way"
	case leader == "":
		return m.noLeaderReason()
	case m.group == nil || string(leader) == m.cfg.Advertise:
		return m.takeoverReason()
	}
	return "this manager is not ready, do not stop another: " + cmp.Or(m.group.NotReadyReason(), "it has just become so")
}

func answerPlain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprintln(w, text) // a client that is gone needs no answer
}
