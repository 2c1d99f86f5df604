// Package frontend is the entry point of Live Mesh for users: it forwards requests to the
// servers that own their names, and serves a page that runs a device.
//
// It is stateless. Any number of frontends may run, and any of them may fail.
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

// A Service is a service behind a frontend.
type Service struct {
	// Prefix is the prefix of its paths: "/queues/".
	Prefix string
	Lookup *lookup.Lookup
	// MaxOutstanding is the maximum number of concurrent requests to one of its servers
	// (PRS 3.3). Others for that server are refused at once with 429 and Retry-After.
	// Default: that of package leasehttp.
	MaxOutstanding int
}

// Config configures a frontend.
type Config struct {
	Services []Service
	// Base sends requests to servers. Default: that of package leasehttp.
	Base http.RoundTripper
	// Logger receives failed requests. Default: no logging.
	Logger *slog.Logger
}

const (
	maxBody = 2 << 20
	stall   = 30 * time.Second
)

// Client returns a client of all services behind a frontend URL, for a number of concurrent
// requests.
func Client(at string, callers int) (jsonhttp.Client, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return jsonhttp.Client{}, fmt.Errorf("--frontend is %q, want a URL, for example http://127.0.0.1:8080", at)
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
	// Cross-site requests must not write with the rights of the page's user.
	return http.NewCrossOriginProtection().Handler(mux), nil
}

func (s *Service) proxy(cfg Config) (http.Handler, error) {
	if s.Lookup == nil || len(s.Prefix) < 2 {
		return nil, leasehold.Errorf("new frontend", leasehold.ErrInvalid, s.Prefix, "want a prefix, for example /queues/, and a lookup")
	}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: s.Lookup, Key: jsonhttp.Key(), Base: cfg.Base, MaxOutstanding: s.MaxOutstanding,
	})
	if err != nil {
		return nil, err
	}
	return leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, MaxBody: maxBody, Stall: stall, Logger: cfg.Logger})
}

// backoff changes the status of requests that the proxy refused because of MaxOutstanding from
// 503 to 429, the status that all services of Live Mesh use for that.
func backoff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(limitWriter{w}, r)
	})
}

type limitWriter struct{ http.ResponseWriter }

// Unwrap lets [http.ResponseController] flush and hijack.
func (w limitWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w limitWriter) WriteHeader(status int) {
	// Servers' responses have no such header: the proxy removes it.
	if status == http.StatusServiceUnavailable && w.Header().Get(leasehttp.HeaderError) == "limit" {
		status = http.StatusTooManyRequests
	}
	w.ResponseWriter.WriteHeader(status)
}

// protect adds the page's security headers: it may only load and call this origin.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the page is read-only", http.StatusMethodNotAllowed)
			return
		}
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
