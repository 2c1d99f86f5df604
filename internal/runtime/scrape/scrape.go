// Package scrape is what the roles share to be measured by Prometheus.
//
// Whoever gives a role a Registerer gets its metrics there; nothing is ever put into
// the registry of the whole process. A role in one process may be there more than once:
// an agent has many owners. Those of one namespace share one collector, so that the
// names of owners, which come and go without bound, are no labels.
package scrape

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
)

// Share registers a collector, or returns the one of the same kind that is registered
// already. It fails with [leasehold.ErrInvalid] if somebody else uses its names.
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

// Taken is the error of a collector that cannot be registered.
func Taken(err error) error {
	return leasehold.Errorf("register metrics", leasehold.ErrInvalid, "Metrics",
		"%w: give it a Registerer of its own, or one that prometheus.WrapRegistererWith has given labels", err)
}

// A Family creates the metrics of a role, and describes and collects them. Its counters and histograms
// are collected by Collect; the role itself collects the gauges, whose descriptions are here.
type Family struct {
	Prefix string // of all names
	Labels prometheus.Labels

	counted []prometheus.Collector
	gauges  []*prometheus.Desc
}

// Describe is for [prometheus.Collector].
func (f *Family) Describe(to chan<- *prometheus.Desc) {
	for _, c := range f.counted {
		c.Describe(to)
	}
	for _, d := range f.gauges {
		to <- d
	}
}

// Collect is for [prometheus.Collector].
func (f *Family) Collect(to chan<- prometheus.Metric) {
	for _, c := range f.counted {
		c.Collect(to)
	}
}

// Counter adds a counter.
func (f *Family) Counter(name, help string) prometheus.Counter {
	return add(f, prometheus.NewCounter(prometheus.CounterOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels}))
}

// Counters adds counters that differ in labels.
func (f *Family) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return add(f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels}, labels))
}

// Histogram adds a histogram.
func (f *Family) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return add(f, prometheus.NewHistogram(prometheus.HistogramOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels, Buckets: buckets}))
}

// Histograms adds histograms of durations that differ in labels.
func (f *Family) Histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return add(f, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: f.Prefix + name, Help: help, ConstLabels: f.Labels, Buckets: Durations(),
	}, labels))
}

// Level adds a gauge that the role sets.
func (f *Family) Level(name, help string) prometheus.Gauge {
	return add(f, prometheus.NewGauge(prometheus.GaugeOpts{Name: f.Prefix + name, Help: help, ConstLabels: f.Labels}))
}

// Gauge adds a gauge that the role collects.
func (f *Family) Gauge(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(f.Prefix+name, help, labels, f.Labels)
	f.gauges = append(f.gauges, d)
	return d
}

func add[C prometheus.Collector](f *Family, c C) C {
	f.counted = append(f.counted, c)
	return c
}

// Label writes words as the value of a label, so that it need not be quoted anywhere.
func Label(words string) string { return strings.ReplaceAll(words, " ", "_") }

// Causes are the values of a label for why leases end and state is lost.
func Causes() []string {
	var out []string
	for c := leasehold.CauseUnknown; c <= leasehold.CauseMoved; c++ {
		out = append(out, Cause(c))
	}
	return out
}

// Cause is the value of one. Whatever a newer peer may say, there are not many.
func Cause(c leasehold.Cause) string {
	if c > leasehold.CauseMoved {
		c = leasehold.CauseUnknown
	}
	return Label(c.String())
}

// Kind is the value of a label for a kind of error.
func Kind(k leasehold.Kind) string {
	if k > leasehold.ErrIndeterminate {
		k = leasehold.Other
	}
	return Label(k.Error())
}

// Begin makes a counter be there before it first counts, for each value of its one
// label: whoever asks by how much it has grown otherwise misses its first step.
func Begin(of *prometheus.CounterVec, values ...string) {
	for _, v := range values {
		of.WithLabelValues(v)
	}
}

// Durations are the buckets for what takes from a millisecond to a minute.
func Durations() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}
