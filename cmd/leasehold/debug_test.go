package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold/internal/agent"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestProfiles are served at their own address, to those who call it by an address.
func TestProfiles(t *testing.T) {
	for _, test := range []struct {
		host, path string
		status     int
	}{
		{"127.0.0.1:6060", "/debug/pprof/", 200},
		{"localhost:6060", "/debug/pprof/goroutine?debug=1", 200},
		{"[::1]:6060", "/debug/pprof/cmdline", 200},
		{"evil.example.com:6060", "/debug/pprof/", 403},
		{"evil.example.com", "/debug/pprof/heap", 403},
		{"127.0.0.1:6060", "/metrics", 404},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://"+test.host+test.path, nil)
		profiles().ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s%s: %d, want %d", test.host, test.path, w.Code, test.status)
		}
	}
}

// TestProfilesAreNotPublic: no other port has them, although package pprof puts them
// into the mux of the whole process.
func TestProfilesAreNotPublic(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	served, err := agent.New(agent.Config{Managers: []string{"127.0.0.1:1"}, Scrape: scrapes(newRegistry(), log)})
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close(t.Context())
	manager := &healthServer{metrics: scrapes(newRegistry(), log)}
	gateway := &healthServer{metrics: scrapes(newRegistry(), log)}
	gateway.ask(&gatewayHealth{})
	for name, handler := range map[string]http.Handler{"manager": manager, "gateway": gateway, "agent": served} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
			if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "goroutine") {
				t.Errorf("the %s's port answers %s with %d", name, path, w.Code)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "leasehold_build_info{") ||
			!strings.Contains(w.Body.String(), "go_goroutines ") || !strings.Contains(w.Body.String(), "process_cpu_seconds_total ") {
			t.Errorf("the %s answers /metrics with %d and %d bytes", name, w.Code, w.Body.Len())
		}
	}
}

// TestDebugListens until it is stopped.
func TestDebugListens(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nobody uses it
	log := slog.New(slog.DiscardHandler)
	if _, err := (&debugSettings{listen: taken.Addr().String()}).serve(log); err == nil || !strings.Contains(err.Error(), "--debug-listen") {
		t.Errorf("on an address that is taken: %v", err)
	}
	addr := taken.Addr().String()
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	stop, err := (&debugSettings{listen: addr}).serve(log)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get("http://" + addr + "/debug/pprof/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was read
	if answer.StatusCode != http.StatusOK || len(text) == 0 {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	stop()
	if answer, err := http.Get("http://" + addr + "/debug/pprof/cmdline"); err == nil {
		_ = answer.Body.Close() // it should not be there
		t.Error("it answers after it was stopped")
	}
}

// TestStoreMetrics: of the registry of the whole process only the store's are taken, and
// none that only its developers understand.
func TestStoreMetrics(t *testing.T) {
	families, err := withStore(newRegistry()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	etcd := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "etcd_") {
			etcd++
		}
		if strings.HasPrefix(f.GetName(), "etcd_debugging_") {
			t.Errorf("%s is exported", f.GetName())
		}
	}
	if etcd == 0 {
		t.Error("there is nothing of etcd")
	}
}

// TestAgentSharesMetrics: owners and lookups of one namespace that come and go are one.
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
		scrapes(registry, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
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
