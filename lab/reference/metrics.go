package main

import (
	"context"
	"log/slog"
	"net"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/store/mem"
)

const metricHeader = `# Metrics

` + generated + `| process | metrics |
|---|---|
| ` + "`leasehold manager run`" + ` | [Process](#process), [Manager](#manager), [Store](#store) |
| ` + "`leasehold gateway`" + ` | [Process](#process), [Lookup](#lookup), [Gateway](#gateway) |
| ` + "`leasehold agent`" + ` | [Process](#process), [Owner](#owner) and [Lookup](#lookup) for each namespace in use |
| a Go service | [Owner](#owner) and [Lookup](#lookup), with ` + "`Config.Metrics`; [Gateway](#gateway), with `leasehttp.ProxyConfig.Metrics`" + ` |
| ` + "`leasehold flease run`" + ` | none: use ` + "`leasehold flease status`" + ` |

A histogram has the series ` + "`_bucket`, `_sum` and `_count`" + `. Names of owners and keys are not labels. [Alerts](../operations/alerts.md)
uses these metrics.
`

const processFooter = `
The Prometheus client for Go adds ` + "`go_*` and `process_*`" + `.
`

const storeSection = `
## Store

Manager: ` + "`leasehold_manager_store_request_duration_seconds` and `leasehold_manager_store_errors_total`" + `. With the embedded
store, a manager also has the metrics of etcd, ` + "`etcd_*` without `etcd_debugging_*`" + `, which the
[documentation of etcd](https://etcd.io/docs/latest/metrics/) describes.
`

// A registry records the metrics that a component registers.
type registry struct {
	prometheus.Registerer // nil: components call only the methods below
	metrics               []scrape.Metric
}

func (r *registry) Register(c prometheus.Collector) error {
	r.metrics = append(r.metrics, c.(interface{ Metrics() []scrape.Metric }).Metrics()...)
	return nil
}

func (r *registry) Unregister(prometheus.Collector) bool { return true }

// metricsReference returns a table of metrics for each component. It starts a manager without namespaces, and an owner
// and a lookup that end at once: components register their metrics before they connect.
func metricsReference() (string, error) {
	var managers, owners, lookups, gateways registry
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	log := slog.New(slog.DiscardHandler)
	m, err := manager.Start(manager.Config{Store: mem.New(), Listener: listener, Logger: log, Metrics: &managers})
	if err != nil {
		return "", err
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	at := []string{listener.Addr().String()}
	// Both fail, because the context has ended.
	_, _ = owner.Join(ended, owner.Config{Namespace: "reference", Managers: at, Addr: "127.0.0.1:1", Logger: log, Metrics: &owners})
	_, _ = lookup.Open(ended, lookup.Config{Namespace: "reference", Managers: at, Logger: log, Metrics: &lookups})
	if err := m.Close(context.Background()); err != nil {
		return "", err
	}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: &lookup.Lookup{}, Key: leasehttp.PathSegment(1)})
	if err != nil {
		return "", err
	}
	if _, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, Metrics: &gateways}); err != nil {
		return "", err
	}
	process, err := processMetrics()
	return metricHeader + metricTable("Process", process) + processFooter + metricTable("Manager", managers.metrics) + storeSection +
		metricTable("Owner", owners.metrics) + metricTable("Lookup", lookups.metrics) + metricTable("Gateway", gateways.metrics), err
}

// processMetrics returns the metrics that every command has, except for those of the Prometheus client.
func processMetrics() (all []scrape.Metric, err error) {
	families, err := daemon.NewRegistry().Gather()
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "leasehold_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		all = append(all, scrape.Metric{Name: f.GetName(), Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp(), Labels: labels})
	}
	return all, err
}

func metricTable(title string, metrics []scrape.Metric) string {
	out := "\n## " + title + "\n\n" + row("metric", "type", "labels", "meaning") + "|---|---|---|---|\n"
	for _, m := range metrics {
		out += row(code(m.Name), m.Type, code(strings.Join(m.Labels, "`, `")), m.Help)
	}
	return out
}
