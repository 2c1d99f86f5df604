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

// metrics is what Prometheus is told of a proxy. How often requests are sent again is
// among the metrics of its lookup. A nil metrics counts nothing.
type metrics struct {
	scrape.Family
	requests *prometheus.CounterVec
	failures *prometheus.CounterVec
	inFlight prometheus.Gauge
	duration prometheus.Histogram
}

// newMetrics registers the metrics of a namespace, unless another proxy has.
func newMetrics(r prometheus.Registerer, ns leasehold.Namespace) (*metrics, error) {
	if r == nil {
		return nil, nil
	}
	m := &metrics{Family: scrape.Family{Prefix: "leasehold_gateway_", Labels: prometheus.Labels{"namespace": string(ns)}}}
	m.requests = m.Counters("requests_total", "Requests that were answered, by the class of the answer's status.", "code")
	m.failures = m.Counters("failures_total", "Requests that were not forwarded or have no answer, by kind: answered by the gateway itself.", "kind")
	m.inFlight = m.Level("requests_in_flight", "Requests in progress, WebSockets and streams included.")
	m.duration = m.Histogram("request_duration_seconds", "Time until the answer to a request begins, with all attempts.", scrape.Durations())
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

// observed returns a writer that notices when an answer begins, and what to call when
// the request is over.
func (m *metrics) observed(w http.ResponseWriter) (*observer, func()) {
	o := &observer{ResponseWriter: w, begun: time.Now()}
	m.inFlight.Inc()
	return o, func() {
		m.inFlight.Dec()
		if o.status == 0 {
			o.note(http.StatusOK) // net/http answers so for a handler that has written nothing
		}
		m.requests.WithLabelValues(strconv.Itoa(o.status/100) + "xx").Inc()
		m.duration.Observe(o.took.Seconds())
	}
}

// An observer is the writer of an answer. It is for one goroutine, as all are.
type observer struct {
	http.ResponseWriter
	begun  time.Time
	took   time.Duration
	status int // 0 before there is one
}

func (o *observer) note(status int) {
	if o.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		o.status, o.took = status, time.Since(o.begun)
	}
}

// Unwrap lets [http.ResponseController] do the rest.
func (o *observer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *observer) WriteHeader(status int) {
	o.note(status)
	o.ResponseWriter.WriteHeader(status)
}

func (o *observer) Write(b []byte) (int, error) {
	o.note(http.StatusOK)
	return o.ResponseWriter.Write(b)
}

// Hijack is how a protocol is switched.
func (o *observer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(o.ResponseWriter).Hijack()
	if err == nil {
		o.note(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}
