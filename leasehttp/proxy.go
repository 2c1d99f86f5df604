package leasehttp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
)

// ProxyConfig configures a [Proxy].
type ProxyConfig struct {
	// Transport finds the servers. Required.
	Transport *Transport

	// Scheme is the protocol to servers: "http", the default, or "https", for which the
	// Transport's DialTLS or Base verifies the server.
	Scheme string

	// MaxBody is the limit of a request's body in bytes; longer ones fail with 413.
	// Default 0: no limit. Bodies are streamed and not buffered.
	MaxBody int64

	// Stall is the longest time without progress while the proxy waits for the caller, to
	// send more of the body or to read more of the response. The request then fails, so
	// that stalled callers cannot use up MaxOutstanding of a server. Default 0: no limit.
	Stall time.Duration

	// TrustForwarded appends to the callers' X-Forwarded-For, and forwards their
	// X-Forwarded-Host and X-Forwarded-Proto. Without it these headers are replaced, so
	// that callers cannot forge their address. Set it if all callers are trusted proxies.
	TrustForwarded bool

	// Logger gets failed requests, at most one per second. Default: none.
	Logger *slog.Logger

	// Metrics, if set, registers Prometheus metrics that begin with "leasehold_gateway_"
	// and are labelled with the namespace. Proxies with the same namespace and the same
	// Metrics share them.
	Metrics prometheus.Registerer
}

func (c *ProxyConfig) validate() error {
	const op = "new proxy"
	if c.Transport == nil {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Transport", "it is required: create one with NewTransport")
	}
	switch c.Scheme {
	case "":
		c.Scheme = "http"
	case "http", "https":
	default:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Scheme", "%q: want http or https", clip(c.Scheme))
	}
	if c.Stall < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Stall", "%v: want a positive duration, or 0 for no limit", c.Stall)
	}
	if c.MaxBody < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "MaxBody", "%d: want a number of bytes, or 0 for no limit", c.MaxBody)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// A Proxy is a [http.Handler] that forwards each request to the owner of its key: a
// [httputil.ReverseProxy] with a [Transport]. It streams bodies in both directions, and
// forwards WebSockets and other switches of protocols. Servers get the caller's Host header,
// and its origin in X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto. Headers that
// begin with "Leasehold-" are removed in both directions.
//
// If a request cannot be forwarded, the response has the header [HeaderError] and a JSON body
// with the error: see the section "Responses of a gateway" of the package's documentation.
//
// It is safe for concurrent use.
type Proxy struct {
	cfg      ProxyConfig
	reverse  httputil.ReverseProxy
	failures *logthrottle.Throttle[struct{}] // of the log
	metrics  *metrics                        // nil without ProxyConfig.Metrics
}

// NewProxy fails with [leasehold.ErrInvalid] if the configuration is invalid.
func NewProxy(cfg ProxyConfig) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Metrics, cfg.Transport.cfg.Lookup.Namespace())
	if err != nil {
		return nil, err
	}
	p := &Proxy{cfg: cfg, metrics: m, failures: logthrottle.New[struct{}](time.Second)}
	p.reverse = httputil.ReverseProxy{
		Transport:      cfg.Transport,
		Rewrite:        p.rewrite,
		ModifyResponse: cleanResponse,
		ErrorHandler:   p.fail,
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		FlushInterval:  -1, // immediately
		BufferPool:     new(buffers),
	}
	return p, nil
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	server := w // MaxBytesReader closes its connection if the body is too long
	if p.metrics != nil {
		observed, end := p.metrics.observed(w)
		defer end()
		w = observed
	}
	if p.cfg.Stall > 0 {
		var end func()
		w, r, end = withStallTimeout(w, r, p.cfg.Stall)
		defer end()
	}
	if limit := p.cfg.MaxBody; limit > 0 && r.Body != nil && r.Body != http.NoBody {
		if r.ContentLength > limit {
			p.fail(w, r, &http.MaxBytesError{Limit: limit})
			return
		}
		bounded := *r
		bounded.Body = http.MaxBytesReader(server, r.Body, limit)
		r = &bounded
	}
	p.reverse.ServeHTTP(cleanWriter{w}, r)
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	// The Transport replaces the host by the owner's address.
	r.Out.URL.Scheme, r.Out.URL.Host = p.cfg.Scheme, r.In.Host
	strip(r.Out.Trailer)
	if !p.cfg.TrustForwarded {
		r.SetXForwarded()
		return
	}
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := r.In.Header[name]; len(values) > 0 {
			r.Out.Header[name] = values
		}
	}
}

func cleanResponse(r *http.Response) error {
	strip(r.Header)
	strip(r.Trailer)
	if r.StatusCode == http.StatusSwitchingProtocols {
		// A ReverseProxy that rejects the switch of protocols leaves the body open. The
		// request's context ends in any case.
		body := r.Body // the ReverseProxy sets r.Body to nil
		context.AfterFunc(r.Request.Context(), func() { _ = body.Close() })
	} else if r.ContentLength < 0 {
		r.Body = &cleanTrailer{r.Body, r}
	}
	return nil
}

// A cleanTrailer is the body of a response; its trailers are complete when it is closed.
type cleanTrailer struct {
	io.ReadCloser
	of *http.Response
}

func (c *cleanTrailer) Close() error {
	defer func() { strip(c.of.Trailer) }()
	return c.ReadCloser.Close()
}

// A cleanWriter removes reserved headers from informational responses, which a ReverseProxy
// forwards without ModifyResponse.
type cleanWriter struct{ http.ResponseWriter }

// Unwrap lets [http.ResponseController] flush and hijack.
func (w cleanWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w cleanWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		strip(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

type buffers struct{ pool sync.Pool }

// Get is for [httputil.ReverseProxy].
func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return *kept
	}
	return make([]byte, 32<<10)
}

// Put is for [httputil.ReverseProxy].
func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }

// withStallTimeout bounds the waits for the caller: to send more of the body, or to read more
// of the response. A stalled request counts as outstanding at a server, and a few of them
// would block all others. A stream that is idle because the server sends nothing is not
// stalled.
//
// The returned function is called at the end of the request. It gives the caller the same
// time to read the rest of the buffers.
func withStallTimeout(w http.ResponseWriter, r *http.Request, longest time.Duration) (http.ResponseWriter, *http.Request, func()) {
	s := &stallWriter{ResponseWriter: w, control: http.NewResponseController(w), longest: longest}
	_ = s.control.SetWriteDeadline(time.Time{}) // reset the previous request's; a writer without deadlines cannot stall
	if r.Body != nil && r.Body != http.NoBody {
		read := *r
		read.Body = &stallBody{r.Body, s}
		r = &read
	}
	return s, r, s.extend
}

type stallWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	longest time.Duration
}

func (s *stallWriter) extend() { _ = s.control.SetWriteDeadline(time.Now().Add(s.longest)) }

// Unwrap lets [http.ResponseController] hijack.
func (s *stallWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stallWriter) Write(p []byte) (int, error) {
	s.extend()
	return s.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (s *stallWriter) FlushError() error {
	s.extend()
	return s.control.Flush()
}

type stallBody struct {
	io.ReadCloser
	stallWriter *stallWriter
}

func (b *stallBody) Read(p []byte) (int, error) {
	// After the end of the body, the http.Server resets the deadline and keeps reading, to
	// detect that the caller disconnects.
	_ = b.stallWriter.control.SetReadDeadline(time.Now().Add(b.stallWriter.longest))
	return b.ReadCloser.Read(p)
}
