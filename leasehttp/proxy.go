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

// ProxyConfig says how a [Proxy] forwards.
type ProxyConfig struct {
	// Transport finds the servers. Required.
	Transport *Transport

	// Scheme is how servers are spoken to: "http", the default, or "https", for which
	// the Transport's DialTLS, or its Base, says whom to trust.
	Scheme string

	// MaxBody is how long the body of a request may be, in bytes; longer ones are
	// refused with 413. Default 0: as long as callers like, since bodies are passed
	// on as they come and not kept.
	MaxBody int64

	// Stall is how long a caller may keep its request waiting: while we want more of
	// its body, or want it to take more of its answer, without a byte's progress.
	// Then it is given up, so that callers who do nothing cannot use up
	// MaxOutstanding of a server. Default 0: as long as they like.
	Stall time.Duration

	// TrustForwarded adds to the X-Forwarded-For of callers, and passes on their
	// X-Forwarded-Host and X-Forwarded-Proto. Without it callers cannot say where
	// they are from: what they send is replaced. Set it if all of them are proxies
	// that can be trusted.
	TrustForwarded bool

	// Logger hears of requests that failed, at most one a second, and why. Default:
	// nobody does.
	Logger *slog.Logger

	// Metrics, if set, is where Prometheus finds out how this proxy is: metrics that
	// begin with "leasehold_gateway_", labelled with the namespace. Proxies of one
	// namespace that have the same Metrics are added up.
	Metrics prometheus.Registerer
}

func (c *ProxyConfig) validate() error {
	const op = "new proxy"
	if c.Transport == nil {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Transport", "it is required: make one with NewTransport")
	}
	switch c.Scheme {
	case "":
		c.Scheme = "http"
	case "http", "https":
	default:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Scheme", "%q: want http or https", clip(c.Scheme))
	}
	if c.Stall < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "Stall", "%v: want a time, or 0 for no bound", c.Stall)
	}
	if c.MaxBody < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, "MaxBody", "%d: want a number of bytes, or 0 for no bound", c.MaxBody)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// A Proxy is a [http.Handler] that forwards each request to the server that owns
// its key: a [httputil.ReverseProxy] with a [Transport]. Bodies are passed on as
// they come, in both directions; WebSockets, and whatever else switches protocols,
// pass through. Servers see the Host header of the caller, and where the request
// came from in X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto. Headers
// that begin with "Leasehold-" pass in neither direction.
//
// A request that cannot be forwarded is answered with a status and a body of
// JSON that says what to do, and with the header [HeaderError]: see the section
// "What callers of a gateway see" of the package's documentation.
//
// It may be used by many goroutines at once.
type Proxy struct {
	cfg      ProxyConfig
	reverse  httputil.ReverseProxy
	failures *logthrottle.Throttle[struct{}] // of the log
	metrics  *metrics                        // nil if nobody asks for them
}

// NewProxy fails with [leasehold.ErrInvalid] if the configuration makes no sense.
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
		FlushInterval:  -1, // whatever a server sends, its caller gets at once
		BufferPool:     new(buffers),
	}
	return p, nil
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	server := w // which a body that is too long lets know
	if p.metrics != nil {
		observed, end := p.metrics.observed(w)
		defer end()
		w = observed
	}
	if p.cfg.Stall > 0 {
		var end func()
		w, r, end = unstalled(w, r, p.cfg.Stall)
		defer end()
	}
	if most := p.cfg.MaxBody; most > 0 && r.Body != nil && r.Body != http.NoBody {
		if r.ContentLength > most {
			p.fail(w, r, &http.MaxBytesError{Limit: most})
			return
		}
		bounded := *r
		bounded.Body = http.MaxBytesReader(server, r.Body, most)
		r = &bounded
	}
	p.reverse.ServeHTTP(cleanWriter{w}, r)
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	// The Transport puts the owner's address in the place of the host.
	r.Out.URL.Scheme, r.Out.URL.Host = p.cfg.Scheme, r.In.Host
	strip(r.Out.Trailer)
	if !p.cfg.TrustForwarded {
		r.SetXForwarded()
		return
	}
	r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if said := r.In.Header[name]; len(said) > 0 {
			r.Out.Header[name] = said
		}
	}
}

func cleanResponse(r *http.Response) error {
	strip(r.Header)
	strip(r.Trailer)
	if r.StatusCode == http.StatusSwitchingProtocols {
		// A ReverseProxy that does not like how the protocol was switched answers the
		// caller, and leaves the body open. The request's context ends in any case.
		body := r.Body // which a ReverseProxy takes out of the answer
		context.AfterFunc(r.Request.Context(), func() { _ = body.Close() })
	} else if r.ContentLength < 0 {
		r.Body = &cleanTrailer{r.Body, r}
	}
	return nil
}

// A cleanTrailer is the body of an answer whose trailers are known when it is closed.
type cleanTrailer struct {
	io.ReadCloser
	of *http.Response
}

func (c *cleanTrailer) Close() error {
	defer func() { strip(c.of.Trailer) }()
	return c.ReadCloser.Close()
}

// A cleanWriter removes what is ours from what informs of an answer to come, which a
// ReverseProxy passes on by itself.
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

// unstalled bounds how long a caller may keep its request waiting: while we want
// more of its body, or want it to take more of its answer. Such a request counts
// as outstanding at a server, and some that do nothing would keep out all others.
// A stream on which nothing happens because the server has nothing to say is not
// meant: nobody waits for its caller.
//
// What is returned is to be called at the end. It leaves the caller as much time
// for what is left in buffers.
func unstalled(w http.ResponseWriter, r *http.Request, longest time.Duration) (http.ResponseWriter, *http.Request, func()) {
	s := &steady{ResponseWriter: w, control: http.NewResponseController(w), longest: longest}
	_ = s.control.SetWriteDeadline(time.Time{}) // that of the request before; what has no deadlines does not stall
	if r.Body != nil && r.Body != http.NoBody {
		read := *r
		read.Body = &steadyBody{r.Body, s}
		r = &read
	}
	return s, r, s.extend
}

type steady struct {
	http.ResponseWriter
	control *http.ResponseController
	longest time.Duration
}

func (s *steady) extend() { _ = s.control.SetWriteDeadline(time.Now().Add(s.longest)) }

// Unwrap lets [http.ResponseController] hijack.
func (s *steady) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *steady) Write(p []byte) (int, error) {
	s.extend()
	return s.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (s *steady) FlushError() error {
	s.extend()
	return s.control.Flush()
}

type steadyBody struct {
	io.ReadCloser
	steady *steady
}

func (b *steadyBody) Read(p []byte) (int, error) {
	// When the body has ended, the server goes on reading to notice that the caller
	// has gone. It takes the deadline away for that.
	_ = b.steady.control.SetReadDeadline(time.Now().Add(b.steady.longest))
	return b.ReadCloser.Read(p)
}
