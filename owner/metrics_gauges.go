package owner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
)

// gauges are the descriptions of the values that Collect computes.
type gauges struct{ owners, leases, suspended, share, validity, lease, term, underWay *prometheus.Desc }

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.Family.Collect(to)
	var (
		leases, suspended, in, out int
		share                      float64
		validity, lease            time.Duration
		term                       leasehold.Term
	)
	m.mu.Lock()
	first := true
	for o := range m.owners {
		held, left := o.present()
		leases += len(held)
		suspended += o.Status().Suspended
		for _, l := range held {
			share += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
		}
		if first || left < validity {
			validity = left
		}
		first = false
		lease = max(lease, time.Duration(o.replies.lease.Load()))
		term = max(term, leasehold.Term(o.replies.term.Load()))
		if o.moves != nil {
			i, e := o.moves.underWay()
			in, out = in+i, out+e
		}
	}
	n := len(m.owners)
	m.mu.Unlock()

	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	g := &m.gauges
	gauge(g.owners, float64(n))
	gauge(g.leases, float64(leases))
	gauge(g.suspended, float64(suspended))
	gauge(g.share, share)
	gauge(g.underWay, float64(in), "in")
	gauge(g.underWay, float64(out), "out")
	if n == 0 {
		return // no open owner
	}
	gauge(g.validity, validity.Seconds())
	gauge(g.lease, lease.Seconds())
	gauge(g.term, float64(term))
}

// present returns the leases that are held now, immutable, and the time until their deadline.
func (o *Owner) present() ([]leasehold.Lease, time.Duration) {
	h := o.holding.Load()
	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch || len(h.areas.held) == 0 {
		return nil, 0
	}
	return h.areas.held, h.until.Sub(now)
}
