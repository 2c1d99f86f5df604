// Package frontend is what users of Live Mesh reach: it passes requests on to the servers
// that own what they are about, and serves a page that plays a device.
//
// It keeps nothing. Any number of frontends may run, and any of them may die.
package frontend

import (
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A Service is what requests are passed on to.
type Service struct {
	// Prefix is how its paths begin: "/queues/".
	Prefix string
	Lookup *lookup.Lookup
	// MaxOutstanding is how many requests may be under way to one of its servers
	// (PRS 3.3). More are refused at once with 429 and Retry-After, as servers refuse what
	// they have no room for, while those for other servers are passed on. Default: as
	// package leasehttp has it.
	MaxOutstanding int
}

// Config says what a frontend is in front of.
type Config struct {
	Services []Service
	// Base sends requests to servers. Default: as package leasehttp has it.
	Base http.RoundTripper
	// Logger hears of requests that failed. Default: nobody does.
	Logger *slog.Logger
}

const (
	maxBody = 2 << 20
	stall   = 30 * time.Second
)

// Client reaches all services behind a frontend, which has a URL, for so many requests at a
// time.
func Client(at string, callers int) (jsonhttp.Client, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return jsonhttp.Client{}, fmt.Errorf("--frontend is %q, want a URL, http://127.0.0.1:8080 for instance", at)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = callers
	return jsonhttp.Client{HTTP: &http.Client{Timeout: 2 * stall, Transport: transport}, URL: strings.TrimSuffix(at, "/")}, nil
}

//go:embed page
var files embed.FS

// New returns a frontend.
func New(cfg Config) (http.Handler, error) {
	mux := http.NewServeMux()
	for _, s := range cfg.Services {
		proxy, err := s.proxy(cfg)
		if err != nil {
			return nil, err
		}
		mux.Handle(s.Prefix, backoff(proxy))
		mux.HandleFunc(s.Prefix+"{$}", func(w http.ResponseWriter, _ *http.Request) {
			jsonhttp.Fail(w, leasehold.Errorf("route", leasehold.ErrInvalid, s.Prefix, "want a name after that"))
		})
	}
	page, err := fs.Sub(files, "page")
	if err != nil {
		return nil, err
	}
	mux.Handle("/", protect(http.FileServerFS(page)))
	// A page of somebody else's must not write here in the name of whoever looks at it.
	return http.NewCrossOriginProtection().Handler(mux), nil
}

func (s *Service) proxy(cfg Config) (http.Handler, error) {
	if s.Lookup == nil || len(s.Prefix) < 2 {
		return nil, leasehold.Errorf("new frontend", leasehold.ErrInvalid, s.Prefix, "a service has a prefix, /queues/ for instance, and a lookup")
	}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: s.Lookup, Key: jsonhttp.Key(), Base: cfg.Base, MaxOutstanding: s.MaxOutstanding,
	})
	if err != nil {
		return nil, err
	}
	return leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, MaxBody: maxBody, Stall: stall, Logger: cfg.Logger})
}

// backoff makes the status of a request that a gateway has refused, because too many are under
// way to its server, the one that all our services have for that: 429. A gateway says 503,
// which may mean anything.
func backoff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(limitWriter{w}, r)
	})
}

type limitWriter struct{ http.ResponseWriter }

// Unwrap lets [http.ResponseController] flush and hijack.
func (w limitWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w limitWriter) WriteHeader(status int) {
	// A server's own answers have no such header: a gateway removes it.
	if status == http.StatusServiceUnavailable && w.Header().Get(leasehttp.HeaderError) == "limit" {
		status = http.StatusTooManyRequests
	}
	w.ResponseWriter.WriteHeader(status)
}

// protect says what the page may do: only what comes from here.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "there is nothing here to write to", http.StatusMethodNotAllowed)
			return
		}
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
