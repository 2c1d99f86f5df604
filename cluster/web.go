package cluster

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// web serves the application's HTTP on the port.
type web struct {
	cfg     *Config
	server  *http.Server
	running sync.WaitGroup
	handler atomic.Pointer[http.Handler] // nil until open
	forward *leasehttp.Transport         // nil without Config.Route
}

// newWeb starts a server that responds with 503 until open.
func newWeb(cfg *Config, listener *inlet) *web {
	w := &web{cfg: cfg}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: prefaceTimeout, IdleTimeout: time.Minute}
	w.running.Go(func() { _ = connlimit.Serve(w.server, listener, connlimit.Config{Logger: cfg.Logger}) })
	return w
}

func (w *web) serve(out http.ResponseWriter, r *http.Request) {
	if h := w.handler.Load(); h != nil {
		(*h).ServeHTTP(out, r)
		return
	}
	out.Header().Set("Retry-After", "1")
	http.Error(out, "this server has not joined its cluster yet", http.StatusServiceUnavailable)
}

// open begins to serve with the Handler.
func (w *web) open(table *lookup.Lookup) error {
	handler := w.cfg.Handler
	if w.cfg.Route.String() != "" {
		transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: table, Key: w.cfg.Route})
		if err != nil {
			return err
		}
		proxy, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, Stall: time.Minute, Logger: w.cfg.Logger})
		if err != nil {
			return err
		}
		w.forward, handler = transport, route(proxy, handler)
	}
	w.handler.Store(&handler)
	return nil
}

// route forwards requests to the owner of their key, which may be this process. Requests that were
// routed by their sender have the header of leasehttp, and are executed or refused here.
func route(forward, execute http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(leasehttp.HeaderKey) != "" {
			execute.ServeHTTP(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	})
}

// close ends the server when its requests have ended, or with the context.
func (w *web) close(ctx context.Context) error {
	err := w.server.Shutdown(ctx)
	if err != nil {
		_ = w.server.Close()
	}
	w.running.Wait()
	if w.forward != nil {
		w.forward.CloseIdleConnections()
	}
	return err
}
