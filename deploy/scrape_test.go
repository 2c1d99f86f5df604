package deploy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
)

// exported is all exported metrics: labels and label values by metric.
type exported map[string]map[string]map[string]bool

// add adds the metrics of a process as Prometheus stores them, with its own labels.
func (e exported) add(t *testing.T, from prometheus.Gatherer) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			names, labels := []string{f.GetName()}, map[string]string{"job": "", "instance": ""}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if m.GetHistogram() != nil {
				names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
				labels["le"] = ""
			}
			for _, name := range names {
				if e[name] == nil {
					e[name] = make(map[string]map[string]bool)
				}
				for label, value := range labels {
					if e[name][label] == nil {
						e[name][label] = make(map[string]bool)
					}
					e[name][label][value] = true
				}
			}
		}
	}
}

// scrape runs managers, owners that transfer state, a lookup and a gateway, and returns their
// metrics. It also checks the names with promlint.
func scrape(t *testing.T) exported {
	t.Helper()
	all := exported{}
	managers := map[string]*prometheus.Registry{}
	cfg := leaseholdtest.Config{Managers: 2, Metrics: func(name string) prometheus.Registerer {
		managers[name] = prometheus.NewRegistry()
		return managers[name]
	}}
	leaseholdtest.Run(t, cfg, func(t *testing.T, c *leaseholdtest.Cluster) {
		application := prometheus.NewRegistry()
		for _, name := range []string{"a", "b"} {
			joinMap(t, c.Node(name), application)
			c.Settle()
		}
		gateway(t, c.Node("gateway"), application)
		c.Advance(10 * time.Second)
		for _, r := range append([]*prometheus.Registry{application}, managers["m1"], managers["m2"]) {
			all.add(t, r)
			families, err := r.Gather()
			if err != nil {
				t.Error(err)
			}
			problems, err := promlint.NewWithMetricFamilies(families).Lint()
			if err != nil {
				t.Error(err)
			}
			for _, p := range problems {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	})
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	all.add(t, process)
	all["up"] = map[string]map[string]bool{"job": {"": true}, "instance": {"": true}} // created by Prometheus
	return all
}

func joinMap(t *testing.T, n *leaseholdtest.Node, metrics prometheus.Registerer) {
	t.Helper()
	cfg := n.MovingConfig()
	cfg.Metrics = metrics
	m, err := leasemap.Join(t.Context(), cfg, leasemap.Config[int]{})
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
}

func gateway(t *testing.T, n *leaseholdtest.Node, metrics prometheus.Registerer) {
	t.Helper()
	cfg := n.LookupConfig()
	cfg.Metrics = metrics
	l, err := lookup.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { _ = l.Close(context.Background()) })
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: l, Key: leasehttp.Header("Key"), Attempts: 2, Base: &http.Transport{DialContext: n.DialContext},
	})
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://gateway/", nil)
	r.Header.Set("Key", "alice")
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable { // the owners' addresses have no server
		t.Errorf("status %d", w.Code)
	}
	transport.CloseIdleConnections()
}

// TestReferenceIsComplete: the reference has every exported metric with its labels.
func TestReferenceIsComplete(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for row := range strings.Lines(string(text)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(row, "| `"), "` | "); ok {
			rows[name] = rest
		}
	}
	for name, labels := range scrape(t) {
		if !strings.HasPrefix(name, "leasehold_") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
			continue
		}
		metric, isHistogram := strings.CutSuffix(name, "_bucket")
		row, ok := rows[metric]
		if !ok || isHistogram != strings.HasPrefix(row, "histogram ") {
			t.Errorf("docs/reference/metrics.md has %q for %s", row, metric)
		}
		for label := range labels {
			if label != "job" && label != "instance" && label != "le" && !strings.Contains(row, "`"+label+"`") {
				t.Errorf("docs/reference/metrics.md lacks the label %s of %s", label, metric)
			}
		}
	}
}

// TestFewSeries: the number of a manager's series does not grow with the number of owners.
func TestFewSeries(t *testing.T) {
	count := func(owners int) (n int) {
		registry := prometheus.NewRegistry()
		leaseholdtest.Run(t, leaseholdtest.Config{Metrics: func(string) prometheus.Registerer { return registry }}, func(t *testing.T, c *leaseholdtest.Cluster) {
			application := prometheus.NewRegistry()
			for i := range owners {
				node := c.Node(fmt.Sprintf("n%d", i))
				cfg := node.OwnerConfig()
				cfg.Metrics = application
				node.Join(cfg)
			}
			c.Settle()
			for _, from := range []prometheus.Gatherer{registry, application} {
				families, err := from.Gather()
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range families {
					n += len(f.GetMetric())
				}
			}
		})
		return n
	}
	// Store requests and dropped messages may have a few more kinds.
	if few, many := count(2), count(20); many > few+5 || few == 0 {
		t.Errorf("2 owners: %d series, 20 owners: %d", few, many)
	}
}
