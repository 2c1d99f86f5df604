package owner

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// A firewall is between owners and managers, and may lose its connection state:
// data on existing connections is dropped, while new connections work.
type firewall struct {
	dial  func(context.Context, string) (net.Conn, error)
	mu    sync.Mutex
	known []*fadingConn
}

func (f *firewall) connect(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := f.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &fadingConn{Conn: conn}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = append(f.known, c)
	return c, nil
}

func (f *firewall) dropState() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.known {
		c.faded.Store(true)
	}
}

type fadingConn struct {
	net.Conn
	faded atomic.Bool
}

func (c *fadingConn) Write(b []byte) (int, error) {
	if c.faded.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *fadingConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.faded.Load() {
			return n, err
		}
	}
}

// A connection that drops all data costs no lease while the leader is
// reachable over another connection, at any time between two renewals.
func TestBlackholedConnectionCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		f := &firewall{dial: n.dial}
		cfg := n.config("10.0.0.1:8080")
		cfg.DialOptions = []grpc.DialOption{grpc.WithContextDialer(f.connect)}
		o := mustJoin(t, cfg)
		lease, ok := o.Check(42)
		if !ok {
			t.Fatal("holds nothing")
		}
		for i := range 20 {
			f.dropState()
			time.Sleep(20*time.Second + time.Duration(i)*130*time.Millisecond)
			if !o.Held(lease) {
				t.Fatalf("the lease is lost in round %d", i+1)
			}
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
