package gateway

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/server/agent"
)

// TestAgentSharesMetrics: all owners and lookups of a namespace share one set of metrics, across
// joins and closes.
func TestAgentSharesMetrics(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		registry := prometheus.NewRegistry()
		for _, name := range []string{"a", "b"} {
			cfg := c.Node(name).OwnerConfig()
			cfg.Metrics = registry
			c.Node(name).Join(cfg)
		}
		c.Settle()
		w := httptest.NewRecorder()
		daemon.Scrapes(registry, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, want := range []string{
			`leasehold_owner_sessions{namespace="` + string(c.Namespace()) + `"} 2`,
			`leasehold_owner_key_space_ratio{namespace="` + string(c.Namespace()) + `"} 1`,
			`leasehold_owner_joins_total{namespace="` + string(c.Namespace()) + `",outcome="accepted"} 2`,
		} {
			if !strings.Contains(w.Body.String(), want+"\n") {
				t.Errorf("no %s in\n%s", want, w.Body)
			}
		}
	})
}

// TestProfilesAreNotPublic: no other port serves profiles, although package pprof registers them
// in the default mux.
func TestProfilesAreNotPublic(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	served, err := agent.New(agent.Config{Managers: []string{"127.0.0.1:1"}, Scrape: daemon.Scrapes(daemon.NewRegistry(), log)})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close(t.Context())
	manager := daemon.ServeHealth(nil, nil, daemon.Scrapes(daemon.NewRegistry(), log), log)
	gateway := daemon.ServeHealth(nil, nil, daemon.Scrapes(daemon.NewRegistry(), log), log)
	gateway.Ask(&Health{})
	for name, handler := range map[string]http.Handler{"manager": manager, "gateway": gateway, "agent": served} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
			if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "goroutine") {
				t.Errorf("the %s's port responds to %s with %d", name, path, w.Code)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "leasehold_build_info{") ||
			!strings.Contains(w.Body.String(), "go_goroutines ") || !strings.Contains(w.Body.String(), "process_cpu_seconds_total ") {
			t.Errorf("the %s responds to /metrics with %d and %d bytes", name, w.Code, w.Body.Len())
		}
	}
}
