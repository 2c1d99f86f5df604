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

// A front is where callers connect. It answers from the first moment on: before
// there is a table, that there is none.
type front struct {
	server *http.Server
	cancel context.CancelFunc // of all requests that are under way
	broken chan error         // has why it serves no more, unless it was stopped
	ended  chan struct{}
	once   sync.Once

	handler  atomic.Pointer[http.Handler]
	release  func() // what forwarding leaves behind
	requests underWay
}

// Bounds on callers. There is none on how long an answer takes: it may be a
// stream.
const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	maxConns    = 1 << 16
	// perCaller is how many of them may be from one address: many, because that may be a
	// load balancer's.
	perCaller = 1 << 15
)

// startFront serves on a listener; in plain text without a config for TLS.
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
	refuse(w, "unavailable", "the gateway waits for a manager to tell it where keys are: send the request again")
}

// refuse answers as the proxy would, if there were one.
func refuse(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.Header().Set(leasehttp.HeaderError, kind)
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = fmt.Fprintf(w, "{\"kind\":%q,\"message\":%q}\n", kind, message) // a caller that has gone needs no answer
}

func (f *front) serve(handler http.Handler, release func()) {
	f.handler.Store(&handler)
	f.release = release
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.requests.begin() {
		refuse(w, "closed", "the gateway is stopping, and the request was not sent: send it again")
		return
	}
	defer f.requests.end()
	(*f.handler.Load()).ServeHTTP(w, r)
}

// stop takes no more requests, and lets those that are under way go on for as
// long as that. It returns when there are none. The first call counts.
func (f *front) stop(drain time.Duration) {
	f.once.Do(func() {
		patience, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		// What it does not know of are connections that were taken over, WebSockets
		// for instance. They are among the requests.
		_ = f.server.Shutdown(patience) // it fails if time is up; they are ended below
		over := f.requests.last()
		select {
		case <-over:
		case <-patience.Done():
		}
		f.cancel()
		_ = f.server.Close() // whoever was connected hears of it
		<-over
		<-f.ended
		f.release()
	})
}

// underWay counts requests, those that have taken their connections over included.
type underWay struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // not nil if no more are taken; closed when there are none
}

// begin reports false if no more are taken.
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

// last takes no more, and returns what is closed when there are none. It is called
// once.
func (u *underWay) last() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over = make(chan struct{}); u.n == 0 {
		close(u.over)
	}
	return u.over
}
