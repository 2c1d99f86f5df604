package daemon

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
)

// maxHealthConns bounds the connections for health, metrics and the dashboard. Each viewer of the
// dashboard keeps one.
const maxHealthConns = 1024

// healthServer serves health checks from the start. A manager that waits for its group is alive: a
// restart by the orchestrator would prevent the group from forming.
type healthServer struct {
	stop    func()
	manager atomic.Pointer[http.Handler] // nil until the manager has started
	metrics http.Handler                 // GET /metrics
}

// ServeHealth serves on a listener, which may be nil; in plaintext without a TLS configuration.
func ServeHealth(at net.Listener, over *tls.Config, metrics http.Handler, log *slog.Logger) *healthServer {
	h := &healthServer{metrics: metrics, stop: func() {}}
	if at == nil {
		return h
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		TLSConfig: over, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	h.stop = serve(server, at, maxHealthConns, log, "health checks are not served any more")
	return h
}

// serve serves on a listener until the returned function is called, which closes all connections.
func serve(server *http.Server, at net.Listener, conns int, log *slog.Logger, broken string) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() {
		if err := connlimit.Serve(server, at, connlimit.Config{Conns: conns, Logger: log}); !errors.Is(err, http.ErrServerClosed) {
			log.Warn(broken, "why", err)
		}
	})
	return func() {
		_ = server.Close() // responses are short, and profiles can be repeated
		running.Wait()
	}
}

func (h *healthServer) Ask(manager http.Handler) { h.manager.Store(&manager) }

func (h *healthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		h.metrics.ServeHTTP(w, r)
		return
	}
	if m := h.manager.Load(); m != nil {
		(*m).ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte("ok, waiting for the store\n")) // the client may have disconnected
		return
	}
	http.Error(w, "waiting for the store: it is unreachable, or a majority of the group has not started yet", http.StatusServiceUnavailable)
}

// Stop ends the server.
func (h *healthServer) Stop() { h.stop() }

// NewRegistry returns a Prometheus registry with the metrics of the process itself.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "leasehold_build_info", Help: "Build of this process, as labels; always 1.",
		ConstLabels: buildLabelsHere(),
	})
	build.Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

func buildLabelsHere() prometheus.Labels { return buildLabels(debug.ReadBuildInfo()) }

// buildLabels returns the version of a binary under the customary label names.
func buildLabels(info *debug.BuildInfo, known bool) prometheus.Labels {
	labels := prometheus.Labels{"version": "(devel)", "revision": "unknown", "goversion": runtime.Version()}
	if !known {
		return labels
	}
	labels["goversion"] = info.GoVersion
	if info.Main.Version != "" {
		labels["version"] = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			labels["revision"] = s.Value
		}
	}
	return labels
}

// Scrapes serves GET /metrics. It rejects requests above a timeout and a concurrency limit; the
// scraper retries.
func Scrapes(from prometheus.Gatherer, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 4, Timeout: 8 * time.Second,
	})
}

// WithStore adds the metrics of the embedded etcd, which registers them globally. Its debugging
// metrics, which are unstable and for its developers, are omitted.
func WithStore(own prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.Gatherers{own, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := prometheus.DefaultGatherer.Gather()
		var out []*dto.MetricFamily
		for _, f := range all {
			if strings.HasPrefix(f.GetName(), "etcd_") && !strings.HasPrefix(f.GetName(), "etcd_debugging_") {
				out = append(out, f)
			}
		}
		return out, err
	})}
}
