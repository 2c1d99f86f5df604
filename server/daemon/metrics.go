package daemon

import (
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

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

// buildLabelsHere is of this very binary.
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
