package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
)

// A network connects callers with servers without a computer's ports, so that it
// works in virtual time too.
type network struct {
	mu      sync.Mutex
	servers map[string]func(net.Conn) // by address; called by a goroutine for each connection
}

func (n *network) dial(_ context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	serve := n.servers[addr]
	if serve == nil {
		return nil, errors.New("connection refused")
	}
	caller, server := net.Pipe()
	go serve(server)
	return caller, nil
}

// listen has a server at an address; nil takes it away.
func (n *network) listen(addr string, serve func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.servers == nil {
		n.servers = make(map[string]func(net.Conn))
	}
	n.servers[addr] = serve
}

// run has a presence service at an address, until what it returns is called.
func (n *network) run(t *testing.T, addr string, p *presence) (stop func()) {
	t.Helper()
	arrivals := make(pipeListener)
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: headerTime}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(arrivals) // it ends when it is closed
	}()
	n.listen(addr, func(conn net.Conn) {
		select {
		case arrivals <- conn:
		case <-done:
			_ = conn.Close()
		}
	})
	stop = sync.OnceFunc(func() {
		n.listen(addr, nil)
		close(arrivals)
		_ = server.Close()
		p.lines.close()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// A pipeListener hands out connections that were made elsewhere.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (pipeListener) Close() error { return nil }

func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
