package etcd

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
)

// Etcd's own listener takes whoever has a certificate of the right authority, reads that
// authority once, and has room for everybody who says nothing. So a member's peers connect
// to a listener of ours, behind a gate, and etcd answers them there. Its connections to
// others are its own.

const (
	// maxPeerConns is how many connections peers may have: each has a handful.
	maxPeerConns = 256
	// peersEvery is how often it is asked whether those who are connected still may.
	peersEvery = time.Second
	// strangersEvery is how often the log hears of those who may not.
	strangersEvery = 10 * time.Second
	// resendWithin bounds how long TCP waits until it sends again what was lost, where the
	// system lets us: it takes no less. When members have been cut off from each other it
	// would otherwise wait for as long again as that lasted, and etcd for it: members write
	// to connections that others have made and that those never give up, since the limits
	// for reading that etcd means to set on them are not in force (up to 3.8.0-alpha.0 its
	// NewTimeoutTransport sets Dial where DialContext is set, which comes first).
	resendWithin = time.Second
	// resendFor is for how long it goes on with that, some 15 minutes as it does by itself. If
	// it were only so often, a connection would end after 15 s, for the member that writes to it;
	// and the one that reads would wait until it hears of that, by its next keepalive.
	resendFor = 15 * time.Minute
)

// A peerServer is where the other members connect.
type peerServer struct {
	listener net.Listener
	allow    func(*tls.ConnectionState) error // nil: everybody who got this far
	logger   *slog.Logger
	server   *http.Server
	stop     chan struct{} // closed when it is to end
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[*tls.Conn]bool

	complaints *logthrottle.Throttle[struct{}]
}

func listenPeers(at *url.URL, cfg *EmbedConfig) (*peerServer, error) {
	l, err := transport.NewListenerWithOpts(at.Host, "http", transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout), resending(cfg.Logger))
	if err != nil {
		return nil, leasehold.Errorf(opEmbed, leasehold.ErrUnavailable, cfg.Name, "%w", err)
	}
	return newPeerServer(l, cfg), nil
}

// resending makes a listener's connections send again soon what was lost, if the system can.
func resending(logger *slog.Logger) transport.ListenerOption {
	return func(o *transport.ListenerOptions) {
		o.ListenConfig.SetMultipathTCP(false) // which cannot be told to
		o.ListenConfig.Control = func(_, _ string, socket syscall.RawConn) error {
			if err := resendSoon(socket); err != nil {
				logger.Info("managers that were cut off from each other may take as long again to find each other: this system does not bound how long TCP waits until it sends again (Linux does since 6.15)", "why", err)
			}
			return nil
		}
	}
}

func newPeerServer(l net.Listener, cfg *EmbedConfig) *peerServer {
	return &peerServer{
		listener: l, allow: cfg.PeerTLS.Allow, logger: cfg.Logger,
		stop: make(chan struct{}), conns: make(map[*tls.Conn]bool), complaints: logthrottle.New[struct{}](strangersEvery),
	}
}

func (p *peerServer) serve(member http.Handler, secured *tls.Config) {
	p.server = &http.Server{
		Handler: p.guard(member), TLSConfig: secured,
		ReadTimeout:  5 * time.Minute, // a snapshot may be large
		ConnState:    p.note,
		ErrorLog:     log.New(io.Discard, "", 0),                               // the gate counts them
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // members speak HTTP/1.1
	}
	p.running.Go(func() {
		if err := connlimit.Serve(p.server, p.listener, connlimit.Config{Conns: maxPeerConns, Logger: p.logger}); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("the other members of the group can no longer connect", "address", p.listener.Addr(), "why", err)
		}
	})
	if p.allow != nil {
		p.running.Go(p.review)
	}
}

func (p *peerServer) guard(next http.Handler) http.Handler {
	if p.allow == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.allow(r.TLS); err != nil {
			p.complain("somebody who is no manager wanted to speak to the store", r.RemoteAddr, err)
			w.Header().Set("Connection", "close")
			http.Error(w, "this is for managers: "+err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// complain tells the log, but not as often as a member tries again.
func (p *peerServer) complain(what, from string, why error) {
	if before, ok := p.complaints.Allow(struct{}{}, 1); ok {
		p.logger.Warn(what, "from", from, "why", why, "others_before", before)
	}
}

// note remembers who is connected. It is called for every connection as it comes and goes.
func (p *peerServer) note(c net.Conn, state http.ConnState) {
	over, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateActive:
		p.conns[over] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, over)
	case http.StateNew, http.StateIdle:
	}
}

// review ends the connections of those who no longer may: members keep them for as long
// as they live.
func (p *peerServer) review() {
	ticker := time.NewTicker(peersEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
		p.mu.Lock()
		for c := range p.conns {
			state := c.ConnectionState()
			if err := p.allow(&state); err != nil {
				p.complain("a member of the group may no longer be one: its connection ends", c.RemoteAddr().String(), err)
				_ = c.NetConn().Close() // without a farewell, which could wait
				delete(p.conns, c)
			}
		}
		p.mu.Unlock()
	}
}

func (p *peerServer) close() {
	if p == nil {
		return
	}
	close(p.stop)
	if p.server == nil {
		_ = p.listener.Close() // nobody was let in
		return
	}
	_ = p.server.Close() // the member has said farewell
	p.running.Wait()
}
