package leasehttp

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
)

// metrics are the Prometheus metrics of a proxy. Retries are among the metrics of its
// lookup. A nil metrics is disabled.
type metrics struct {
	scrape.Family
	requests *prometheus.CounterVec
	failures *prometheus.CounterVec
	inFlight prometheus.Gauge
	duration prometheus.Histogram
}

// newMetrics registers the metrics of a namespace; proxies of one namespace share them.
func newMetrics(r prometheus.Registerer, ns leasehold.Namespace) (*metrics, error) {
	if r == nil {
		return nil, nil
	}
	m := &metrics{Family: scrape.Family{Prefix: "leasehold_gateway_", Labels: prometheus.Labels{"namespace": string(ns)}}}
	m.requests = m.Counters("requests_total", "Completed requests, by the class of the response's status.", "code")
	m.failures = m.Counters("failures_total", "Requests that were not forwarded or have no response, by kind of the gateway's own response.", "kind")
	m.inFlight = m.Level("requests_in_flight", "Requests in progress, WebSockets and streams included.")
	m.duration = m.Histogram("request_duration_seconds", "Time until the response to a request begins, over all attempts.", scrape.Durations())
	scrape.Begin(m.requests, "1xx", "2xx", "3xx", "4xx", "5xx")
	for _, k := range []leasehold.Kind{leasehold.ErrInvalid, leasehold.ErrNoOwner, leasehold.ErrNotOwner, leasehold.ErrSuspended, leasehold.ErrLimit, leasehold.ErrUnavailable, leasehold.ErrIndeterminate} {
		m.failures.WithLabelValues(scrape.Kind(k))
	}
	return scrape.Share(r, m)
}

func (m *metrics) failed(kind leasehold.Kind) {
	if m != nil {
		m.failures.WithLabelValues(scrape.Kind(kind)).Inc()
	}
}

// observed returns a writer that records when the response begins, and the function to call
// at the end of the request.
func (m *metrics) observed(w http.ResponseWriter) (*observer, func()) {
	o := &observer{ResponseWriter: w, begun: time.Now()}
	m.inFlight.Inc()
	return o, func() {
		m.inFlight.Dec()
		if o.status == 0 {
			o.record(http.StatusOK) // the status of a handler that writes nothing
		}
		m.requests.WithLabelValues(strconv.Itoa(o.status/100) + "xx").Inc()
		m.duration.Observe(o.took.Seconds())
	}
}

// An observer records the status and the latency of a response. It is for one goroutine.
type observer struct {
	http.ResponseWriter
	begun  time.Time
	took   time.Duration
	status int // 0 before the response begins
}

func (o *observer) record(status int) {
	if o.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		o.status, o.took = status, time.Since(o.begun)
	}
}

// Unwrap is for [http.ResponseController].
func (o *observer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *observer) WriteHeader(status int) {
	o.record(status)
	o.ResponseWriter.WriteHeader(status)
}

func (o *observer) Write(b []byte) (int, error) {
	o.record(http.StatusOK)
	return o.ResponseWriter.Write(b)
}

// Hijack records a switch of protocols.
func (o *observer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(o.ResponseWriter).Hijack()
	if err == nil {
		o.record(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}
