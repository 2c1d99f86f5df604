package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// A front accepts the requests of callers. Before it has a lease table it rejects them.
type front struct {
	server *http.Server
	cancel context.CancelFunc // of all requests in flight
	broken chan error         // receives the error if serving fails
	ended  chan struct{}
	once   sync.Once

	handler  atomic.Pointer[http.Handler]
	release  func() // closes idle connections to servers
	requests underWay
}

// Limits for callers. The duration of a response is unlimited, since it may be a stream.
const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	maxConns    = 1 << 16
	// perCaller is the limit per address. It is high, because the address may be that of a load
	// balancer.
	perCaller = 1 << 15
)

// startFront serves on a listener; in plaintext without a TLS configuration.
func startFront(at net.Listener, over *tls.Config, log *slog.Logger) *front {
	ctx, cancel := context.WithCancel(context.Background())
	f := &front{cancel: cancel, broken: make(chan error, 1), ended: make(chan struct{}), release: func() {}}
	f.serve(http.HandlerFunc(notYet), f.release)
	f.server = &http.Server{
		Handler: f, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes, TLSConfig: over,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(f.ended)
		if err := connlimit.Serve(f.server, at, connlimit.Config{Conns: maxConns, PerHost: perCaller, Logger: log}); !errors.Is(err, http.ErrServerClosed) {
			f.broken <- err
		}
	}()
	return f
}

func notYet(w http.ResponseWriter, _ *http.Request) {
	refuse(w, "unavailable", "the gateway has no lease table yet, because no manager has responded: retry the request")
}

// refuse responds in the format of the proxy.
func refuse(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.Header().Set(leasehttp.HeaderError, kind)
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = fmt.Fprintf(w, "{\"kind\":%q,\"message\":%q}\n", kind, message) // the caller may have disconnected
}

func (f *front) serve(handler http.Handler, release func()) {
	f.handler.Store(&handler)
	f.release = release
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.requests.begin() {
		refuse(w, "closed", "the gateway is stopping, and the request was not sent: retry it")
		return
	}
	defer f.requests.end()
	(*f.handler.Load()).ServeHTTP(w, r)
}

// stop rejects new requests, and waits for those in flight, for at most the drain time; then it
// cancels them. Only the first call has an effect.
func (f *front) stop(drain time.Duration) {
	f.once.Do(func() {
		patience, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		// Shutdown ignores hijacked connections, such as WebSockets. They are counted as
		// requests.
		_ = f.server.Shutdown(patience) // after a timeout the requests are cancelled below
		over := f.requests.last()
		select {
		case <-over:
		case <-patience.Done():
		}
		f.cancel()
		_ = f.server.Close() // closes the connections of callers
		<-over
		<-f.ended
		f.release()
	})
}

// underWay counts requests in flight, including hijacked connections.
type underWay struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // not nil when draining; closed when n is 0
}

// begin counts a request. It returns false when draining.
func (u *underWay) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over != nil {
		return false
	}
	u.n++
	return true
}

func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 && u.over != nil {
		close(u.over)
	}
}

// last starts draining, and returns a channel that is closed when no request is left. It is called
// once.
func (u *underWay) last() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over = make(chan struct{}); u.n == 0 {
		close(u.over)
	}
	return u.over
}
