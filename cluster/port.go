package cluster

import (
	"bytes"
	"container/list"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// A port shares one listener. The first bytes of a connection select its protocol:
//
//	movePreface            a transfer of state from another owner; the rest is gRPC
//	TLS, HTTP/2            gRPC: the manager
//	anything else          HTTP/1.1: the application
//
// The listener stays open until close, even if a server closes its inlet: as long as it is open, no
// other process can have this member's name.
type port struct {
	listener     net.Listener
	calls, pages *inlet
	running      sync.WaitGroup

	mu      sync.Mutex
	moves   *inlet
	pending list.List // connections that no server has accepted yet, oldest first: of type *pendingConn
	closed  bool
}

// The protocols of a port. All prefaces have the same length, less than any request.
const (
	movePreface  = "\x00LHM"
	http2Preface = "PRI "
	tlsHandshake = 0x16 // the first byte of a TLS record

	// prefaceTimeout and maxPending bound connections that send nothing, or whose server does not
	// accept them.
	prefaceTimeout = 5 * time.Second
	maxPending     = 1024
)

func newPort(listener net.Listener) *port {
	p := &port{listener: listener}
	p.calls, p.moves, p.pages = newInlet(listener), newInlet(listener), newInlet(listener)
	p.running.Go(p.accept)
	return p
}

// accept accepts connections until close.
func (p *port) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if p.isClosed() {
				return
			}
			time.Sleep(acceptPause) // too many open files, for example
			continue
		}
		if element := p.hold(conn); element != nil {
			p.running.Go(func() { p.route(conn, element) })
		}
	}
}

const acceptPause = 10 * time.Millisecond

// A pendingConn is a connection that no server has accepted yet.
type pendingConn struct {
	net.Conn
	evicted chan struct{}
}

func (c *pendingConn) evict() {
	close(c.evicted)
	_ = c.Close()
}

// hold records a connection as pending, and closes the oldest one if there are too many. After close
// it closes the connection and returns nil.
func (p *port) hold(conn net.Conn) *list.Element {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return nil
	}
	if p.pending.Len() >= maxPending {
		p.pending.Remove(p.pending.Front()).(*pendingConn).evict()
	}
	return p.pending.PushBack(&pendingConn{conn, make(chan struct{})})
}

// route reads the first bytes of a connection, and passes it to the server of its protocol.
func (p *port) route(conn net.Conn, pending *list.Element) {
	defer p.release(pending)
	preface := make([]byte, len(movePreface))
	_ = conn.SetReadDeadline(time.Now().Add(prefaceTimeout))
	_, err := io.ReadFull(conn, preface)
	_ = conn.SetReadDeadline(time.Time{})
	p.mu.Lock()
	moves := p.moves
	p.mu.Unlock()
	evicted := pending.Value.(*pendingConn).evicted
	switch {
	case err != nil:
		_ = conn.Close()
	case string(preface) == movePreface:
		moves.offer(conn, evicted)
	case string(preface) == http2Preface || preface[0] == tlsHandshake:
		p.calls.offer(&prefacedConn{Conn: conn, unread: bytes.NewReader(preface)}, evicted)
	default:
		p.pages.offer(&prefacedConn{Conn: conn, unread: bytes.NewReader(preface)}, evicted)
	}
}

// release ends the pending state of a connection that has a server, or is closed.
func (p *port) release(pending *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending.Remove(pending) // no effect if hold has removed it
}

// reopenMoves replaces the inlet of transfers, which an owner that could not join has closed.
func (p *port) reopenMoves() *inlet {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.moves.Close()
	p.moves = newInlet(p.listener)
	return p.moves
}

func (p *port) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// close closes the listener and pending connections, and waits for the goroutines.
func (p *port) close() {
	p.mu.Lock()
	p.closed = true
	for e := p.pending.Front(); e != nil; e = e.Next() {
		e.Value.(*pendingConn).evict()
	}
	_ = p.moves.Close()
	p.mu.Unlock()
	_, _ = p.calls.Close(), p.pages.Close()
	_ = p.listener.Close()
	p.running.Wait()
}

// An inlet is the listener of one protocol.
type inlet struct {
	addr    net.Addr
	ready   chan net.Conn
	closing sync.Once
	done    chan struct{}
}

func newInlet(of net.Listener) *inlet {
	return &inlet{addr: of.Addr(), ready: make(chan net.Conn), done: make(chan struct{})}
}

// offer passes a connection to the server, or closes it if there is none, or it is evicted.
func (in *inlet) offer(conn net.Conn, evicted <-chan struct{}) {
	timer := time.NewTimer(prefaceTimeout)
	defer timer.Stop()
	select {
	case in.ready <- conn:
	case <-in.done:
		_ = conn.Close()
	case <-evicted:
	case <-timer.C:
		_ = conn.Close()
	}
}

// Accept implements [net.Listener].
func (in *inlet) Accept() (net.Conn, error) {
	select {
	case conn := <-in.ready:
		return conn, nil
	case <-in.done:
		return nil, &net.OpError{Op: "accept", Net: in.addr.Network(), Addr: in.addr, Err: net.ErrClosed}
	}
}

// Close implements [net.Listener]. The port stays open.
func (in *inlet) Close() error {
	in.closing.Do(func() { close(in.done) })
	return nil
}

// Addr implements [net.Listener].
func (in *inlet) Addr() net.Addr { return in.addr }

// A prefacedConn returns the bytes again that selected its protocol.
type prefacedConn struct {
	net.Conn
	unread *bytes.Reader
}

func (c *prefacedConn) Read(p []byte) (int, error) {
	if c.unread.Len() > 0 {
		return c.unread.Read(p)
	}
	return c.Conn.Read(p)
}

// dialMoves makes connections to other members select their state mover.
func dialMoves() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(conn, movePreface); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	})
}
