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

// Etcd's own peer listener accepts every certificate of the CA, loads the CA only once, and does
// not limit idle connections. So peers connect to this package's listener, with its limits, and
// etcd serves them there. Etcd makes the outgoing connections itself.

const (
	// maxPeerConns bounds the connections of peers; each peer has a handful.
	maxPeerConns = 256
	// peersEvery is the interval at which the permissions of connected peers are checked.
	peersEvery = time.Second
	// strangersEvery limits the log of rejected peers.
	strangersEvery = 10 * time.Second
	// resendWithin bounds TCP's retransmission timeout, on systems that permit it; the kernel has a
	// minimum. After a partition TCP would otherwise back off for as long again as the partition
	// lasted, and so would etcd: members write to connections that others opened and never give
	// up, since etcd's read timeouts are not in force (up to 3.8.0-alpha.0 its
	// NewTimeoutTransport sets Dial where DialContext is set, which takes precedence).
	resendWithin = time.Second
	// resendFor is the total time of retransmissions, about 15 minutes as by default. With only the
	// default number of retransmissions a connection would fail after 15 s for the writer, and the
	// reader would notice only by its next keepalive.
	resendFor = 15 * time.Minute
)

// A peerServer accepts the connections of the other members.
type peerServer struct {
	listener net.Listener
	allow    func(*tls.ConnectionState) error // nil: every authenticated peer
	logger   *slog.Logger
	server   *http.Server
	stop     chan struct{} // closed by close
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

// resending bounds the retransmission timeout of a listener's connections, if the system can.
func resending(logger *slog.Logger) transport.ListenerOption {
	return func(o *transport.ListenerOptions) {
		o.ListenConfig.SetMultipathTCP(false) // it does not support the option
		o.ListenConfig.Control = func(_, _ string, socket syscall.RawConn) error {
			if err := resendSoon(socket); err != nil {
				logger.Info("after a partition managers may take as long again to reconnect: this system does not bound TCP's retransmission timeout (Linux 6.15 and later do)", "why", err)
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
			p.logger.Error("the other members of the group cannot connect any more", "address", p.listener.Addr(), "why", err)
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
			p.complain("store connection rejected: the peer is not a manager", r.RemoteAddr, err)
			w.Header().Set("Connection", "close")
			http.Error(w, "only managers may connect: "+err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// complain logs at a limited rate, since members retry often.
func (p *peerServer) complain(what, from string, why error) {
	if before, ok := p.complaints.Allow(struct{}{}, 1); ok {
		p.logger.Warn(what, "from", from, "why", why, "others_before", before)
	}
}

// note tracks the open connections. It is called for every change of a connection's state.
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

// review closes the connections of peers that have lost their permission: members keep
// connections open for their lifetime.
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
				p.complain("store connection closed: the peer is not permitted any more", c.RemoteAddr().String(), err)
				_ = c.NetConn().Close() // without a TLS close message, which could block
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
		_ = p.listener.Close() // nothing was accepted
		return
	}
	_ = p.server.Close() // the etcd member has already stopped
	p.running.Wait()
}
