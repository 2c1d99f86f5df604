// Package scrape is the common part of the Prometheus metrics of all roles.
//
// A role registers its metrics at the given Registerer only, never at the global registry. A process may
// have several instances of a role: an agent has many owners. The owners of one namespace share a
// collector. The names of owners, whose number is unbounded, are not labels.
package scrape

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
)

// Share registers a collector, or returns the registered one of the same type. It fails with
// [leasehold.ErrInvalid] if another collector uses its names.
func Share[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	err := r.Register(c)
	if err == nil {
		return c, nil
	}
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		if shared, ok := before.ExistingCollector.(C); ok {
			return shared, nil
		}
	}
	return c, Taken(err)
}

// Taken returns the error of a collector that cannot be registered.
func Taken(err error) error {
	return leasehold.Errorf("register metrics", leasehold.ErrInvalid, "Metrics",
		"%w: use another Registerer, or add labels with prometheus.WrapRegistererWith", err)
}

// A Family creates, describes and collects the metrics of a role, except for the values of gauges created
// by Gauge, which the role collects.
type Family struct {
	Prefix string // of all names
	Labels prometheus.Labels

	counted []prometheus.Collector
	gauges  []*prometheus.Desc
	metrics []Metric
}

// A Metric describes a metric, for the reference.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// Metrics returns the descriptions of all metrics, in the order in which they were added.
func (f *Family) Metrics() []Metric { return f.metrics }

func (f *Family) describe(kind, name, help string, labels ...string) {
	for label := range f.Labels {
		labels = append([]string{label}, labels...)
	}
	f.metrics = append(f.metrics, Metric{f.Prefix + name, kind, help, labels})
}

// Describe implements [prometheus.Collector].
func (f *Family) Describe(to chan<- *prometheus.Desc) {
	for _, c := range f.counted {
		c.Describe(to)
	}
	for _, d := range f.gauges {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (f *Family) Collect(to chan<- prometheus.Metric) {
	for _, c := range f.counted {
		c.Collect(to)
	}
}

// Counter adds a counter.
func (f *Family) Counter(name, help string) prometheus.Counter {
	f.describe("counter", name, help)
	return add(f, prometheus.NewCounter(prometheus.CounterOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels}))
}

// Counters adds counters with labels.
func (f *Family) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	f.describe("counter", name, help, labels...)
	return add(f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels}, labels))
}

// Histogram adds a histogram.
func (f *Family) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	f.describe("histogram", name, help)
	return add(f, prometheus.NewHistogram(prometheus.HistogramOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels, Buckets: buckets}))
}

// Histograms adds histograms of durations with labels.
func (f *Family) Histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	f.describe("histogram", name, help, labels...)
	return add(f, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: f.Prefix + name, Help: help, ConstLabels: f.Labels, Buckets: Durations(),
	}, labels))
}

// Level adds a gauge that the role sets.
func (f *Family) Level(name, help string) prometheus.Gauge {
	f.describe("gauge", name, help)
	return add(f, prometheus.NewGauge(prometheus.GaugeOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels}))
}

// Gauge adds a gauge that the role collects.
func (f *Family) Gauge(name, help string, labels ...string) *prometheus.Desc {
	return f.collected("gauge", name, help, labels)
}

// Total adds a counter that the role collects.
func (f *Family) Total(name, help string, labels ...string) *prometheus.Desc {
	return f.collected("counter", name, help, labels)
}

func (f *Family) collected(kind, name, help string, labels []string) *prometheus.Desc {
	f.describe(kind, name, help, labels...)
	d := prometheus.NewDesc(f.Prefix+name, help, labels, f.Labels)
	f.gauges = append(f.gauges, d)
	return d
}

func add[C prometheus.Collector](f *Family, c C) C {
	f.counted = append(f.counted, c)
	return c
}

// Label converts words to a label value without spaces.
func Label(words string) string { return strings.ReplaceAll(words, " ", "_") }

// Causes returns the label values of all causes of ended leases and losses.
func Causes() []string {
	var out []string
	for c := leasehold.CauseUnknown; c <= leasehold.CauseDied; c++ {
		out = append(out, Cause(c))
	}
	return out
}

// Cause returns the label value of a cause. Unknown causes of newer peers share one value, which bounds their number.
func Cause(c leasehold.Cause) string {
	if c > leasehold.CauseDied {
		c = leasehold.CauseUnknown
	}
	return Label(c.String())
}

// Kind returns the label value of a kind of error.
func Kind(k leasehold.Kind) string {
	if k > leasehold.ErrIndeterminate {
		k = leasehold.Other
	}
	return Label(k.Error())
}

// Begin creates the counters for all values of the label at 0. Otherwise rate and increase miss the first
// increment.
func Begin(of *prometheus.CounterVec, values ...string) {
	for _, v := range values {
		of.WithLabelValues(v)
	}
}

// Durations returns the buckets for durations from a millisecond to a minute.
func Durations() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}
