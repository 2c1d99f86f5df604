package manager

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// leaderConn is a standby's connection to the current leader.
type leaderConn struct {
	m *Manager

	mu   sync.Mutex
	addr string
	conn *grpc.ClientConn
}

func newLeaderConn(m *Manager) *leaderConn { return &leaderConn{m: m} }

// to returns the connection to a leader. If the leader changed it dials, and closes the
// connection to the former leader.
func (l *leaderConn) to(addr string) (*grpc.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil && l.addr == addr {
		return l.conn, nil
	}
	conn, err := l.m.dial(addr)
	if err != nil {
		return nil, err
	}
	if l.conn != nil {
		_ = l.conn.Close()
	}
	l.addr, l.conn = addr, conn
	return conn, nil
}

func (l *leaderConn) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// dial returns a connection to another manager, without waiting for it.
func (m *Manager) dial(addr string) (*grpc.ClientConn, error) {
	options := append(wire.DialOptions(),
		grpc.WithTransportCredentials(m.cfg.ClientCredentials),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))
	conn, err := grpc.NewClient("passthrough:///"+addr, append(options, m.cfg.DialOptions...)...)
	if err != nil {
		return nil, &leasehold.Error{Op: "connect to another manager", Kind: leasehold.ErrUnavailable, Subject: addr, Err: err}
	}
	return conn, nil
}
