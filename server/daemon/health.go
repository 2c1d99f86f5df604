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

// maxHealthConns is how many may ask for health, metrics and the dashboard at a time:
// each viewer of the dashboard has one connection for as long as it looks.
const maxHealthConns = 1024

// healthServer answers health checks from the first moment on. A member that
// waits for its group lives, and whoever took it for dead and restarted it would
// keep the group from ever forming.
type healthServer struct {
	stop    func()
	manager atomic.Pointer[http.Handler] // nil until there is one
	metrics http.Handler                 // answers GET /metrics
}

// ServeHealth serves on a listener, or nowhere if that is nil; in plain text without a
// config for TLS.
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
	h.stop = serve(server, at, maxHealthConns, log, "health checks are no longer answered")
	return h
}

// serve serves on a listener until what it returns is called. Requests that are under way end then.
func serve(server *http.Server, at net.Listener, conns int, log *slog.Logger, broken string) (stop func()) {
	var running sync.WaitGroup
	running.Go(func() {
		if err := connlimit.Serve(server, at, connlimit.Config{Conns: conns, Logger: log}); !errors.Is(err, http.ErrServerClosed) {
			log.Warn(broken, "why", err)
		}
	})
	return func() {
		_ = server.Close() // an answer is over in an instant, and a profile can be had again
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
		_, _ = w.Write([]byte("ok, waiting for the store\n")) // a client that is gone needs no answer
		return
	}
	http.Error(w, "waiting for the store: it is out of reach, or a majority of the group has not started yet", http.StatusServiceUnavailable)
}

// Stop ends the server.
func (h *healthServer) Stop() { h.stop() }

// NewRegistry returns what a process has to tell Prometheus: at first about itself.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "leasehold_build_info", Help: "What this process runs, as labels; always 1.",
		ConstLabels: buildLabelsHere(),
	})
	build.Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

func buildLabelsHere() prometheus.Labels { return buildLabels(debug.ReadBuildInfo()) }

// buildLabels says what a binary is made of, under the names that others use for it too.
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

// Scrapes answers GET /metrics. What takes too long, and whoever asks while others wait
// for an answer, is refused: it is asked again soon.
func Scrapes(from prometheus.Gatherer, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 4, Timeout: 8 * time.Second,
	})
}

// WithStore adds what the etcd inside of this process says of itself, which it puts into
// the registry of the whole process. What it calls debugging may change with every
// version, and is of no use to those who do not develop it.
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
