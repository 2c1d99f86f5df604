package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A recorder records scrapes, as Prometheus does.
type recorder struct {
	scrapes int
	values  map[string][]string // by metric with its labels, one for each scrape
}

// look scrapes all targets; nil is one that is down.
func (r *recorder) look(t *testing.T, job string, targets map[string]prometheus.Gatherer) {
	t.Helper()
	for instance, from := range targets {
		labels := fmt.Sprintf("instance=%q,job=%q", instance, job)
		if from == nil {
			r.add("up{"+labels+"}", "0")
			continue
		}
		r.add("up{"+labels+"}", "1")
		families, err := from.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				r.take(f.GetName(), labels, m)
			}
		}
	}
}

// take records a metric as Prometheus stores it.
func (r *recorder) take(name, labels string, m *dto.Metric) {
	for _, l := range m.GetLabel() {
		labels += fmt.Sprintf(",%s=%q", l.GetName(), l.GetValue())
	}
	switch h := m.GetHistogram(); {
	case h != nil:
		for _, b := range h.GetBucket() {
			r.add(fmt.Sprintf("%s_bucket{%s,le=%q}", name, labels, fmt.Sprint(b.GetUpperBound())), fmt.Sprint(b.GetCumulativeCount()))
		}
		r.add(fmt.Sprintf(`%s_bucket{%s,le="+Inf"}`, name, labels), fmt.Sprint(h.GetSampleCount()))
	case m.GetCounter() != nil:
		r.add(name+"{"+labels+"}", fmt.Sprint(m.GetCounter().GetValue()))
	default:
		r.add(name+"{"+labels+"}", fmt.Sprint(m.GetGauge().GetValue()))
	}
}

// add records a value. A new series is absent in earlier scrapes.
func (r *recorder) add(name, value string) {
	r.fill(name)
	r.values[name] = append(r.values[name], value)
}

// fill records the scrapes in which a metric was absent.
func (r *recorder) fill(name string) {
	for len(r.values[name]) < r.scrapes {
		absent := "_"
		if len(r.values[name]) > 0 && r.values[name][len(r.values[name])-1] != "_" {
			absent = "stale"
		}
		r.values[name] = append(r.values[name], absent)
	}
}

// next ends a round of scrapes.
func (r *recorder) next() {
	r.scrapes++
	for name := range r.values {
		r.fill(name)
	}
}

// series returns the recorded series of the metrics in expressions.
func (r *recorder) series(exprs string) (out []series) {
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		if metric, _, _ := strings.Cut(name, "{"); strings.Contains(exprs, metric) {
			out = append(out, series{name, strings.Join(r.values[name], " ")})
		}
	}
	return out
}

// TestAlertsStaySilent: no alert fires for a new group of three, while servers join, and while
// servers and managers are restarted one after the other.
func TestAlertsStaySilent(t *testing.T) {
	seen := &recorder{values: map[string][]string{}}
	managers, servers := map[string]prometheus.Gatherer{}, map[string]prometheus.Gatherer{}
	cfg := leaseholdtest.Config{Managers: 3, Metrics: func(name string) prometheus.Registerer {
		r := prometheus.NewRegistry()
		managers[name] = r
		return r
	}}
	leaseholdtest.Run(t, cfg, func(t *testing.T, c *leaseholdtest.Cluster) {
		run := func(d time.Duration) {
			for ; d > 0; d -= scrapeEvery {
				c.Advance(scrapeEvery)
				seen.look(t, "managers", managers)
				seen.look(t, "servers", servers)
				seen.next()
			}
		}
		join := func(name string) *leasemap.Map[int] {
			r := prometheus.NewRegistry()
			servers[name] = r
			cfg := c.Node(name).MovingConfig()
			cfg.Metrics = r
			m, err := leasemap.Join(t.Context(), cfg, leasemap.Config[int]{})
			if err != nil {
				t.Fatal(err)
			}
			c.Node(name).Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
			return m
		}
		run(2 * time.Minute) // no owner
		all := map[string]*leasemap.Map[int]{"a": join("a"), "b": join("b"), "c": join("c")}
		client := prometheus.NewRegistry()
		servers["caller"] = client
		gateway(t, c.Node("caller"), client)
		run(2 * time.Minute)
		for _, name := range []string{"a", "b", "c"} {
			if err := all[name].Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			servers[name] = nil
			run(scrapeEvery)
			join(name)
			run(time.Minute)
		}
		for _, name := range slices.Sorted(maps.Keys(managers)) {
			c.KillManager(name) // worse than a termination
			managers[name] = nil
			run(2 * scrapeEvery)
			c.StartManager(name)
			run(time.Minute)
		}
		run(2 * time.Minute)
	})
	exprs, checks, alerts := "", []exprTest(nil), readAlerts(t)
	for _, a := range alerts {
		exprs += a.Expr + "\n"
	}
	for at := time.Duration(0); at < time.Duration(seen.scrapes)*scrapeEvery; at += 2 * scrapeEvery {
		checks = append(checks, exprTest{`ALERTS{alertstate="firing"}`, at.String(), nil})
	}
	promtoolTest(t, alerts, ruleTest{Name: "a healthy group", Series: seen.series(exprs), Exprs: checks})
}
