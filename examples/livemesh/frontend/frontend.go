// Package frontend is the entry point of Live Mesh for users: it forwards requests to the
// servers that own their names, and serves a page that runs a device.
//
// It is stateless. Any number of frontends may run, and any of them may fail.
package frontend

import (
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

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
	// (PRS 3.3). Others for that server are refused at once with 503.
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
func Client(at string, callers int) jsonhttp.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = callers
	return jsonhttp.Client{HTTP: &http.Client{Timeout: 2 * stall, Transport: transport}, URL: strings.TrimSuffix(at, "/")}
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
		mux.Handle(s.Prefix, proxy)
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
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: s.Lookup, Key: jsonhttp.Key(), Base: cfg.Base, MaxOutstanding: s.MaxOutstanding,
	})
	if err != nil {
		return nil, err
	}
	return leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, MaxBody: maxBody, Stall: stall, Logger: cfg.Logger})
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
