package managerconn

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

type (
	request  = leaseholdv1.HoldRequest
	response = leaseholdv1.HoldResponse
)

// A network connects a link with fake managers.
type network struct {
	t  *testing.T
	mu sync.Mutex
	at map[string]*manager
	// hold, if set, blocks all dials until it is closed.
	hold chan struct{}
	// conns are all connections so far, for blackhole.
	conns []*fadingConn
}

// A manager records received messages, and replies to each with its sequence number if so
// configured.
type manager struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	addr     string
	replies  bool
	endAfter int // ends each stream after this number of messages, if not 0
	listener *bufconn.Listener
	server   *grpc.Server

	mu       sync.Mutex
	received []uint64 // sequence numbers
	streams  int      // open
	opened   int      // so far
}

func newNetwork(t *testing.T, managers ...*manager) *network {
	n := &network{t: t, at: make(map[string]*manager)}
	for _, m := range managers {
		m.listener = bufconn.Listen(1 << 16)
		m.server = grpc.NewServer()
		leaseholdv1.RegisterOwnerServiceServer(m.server, m)
		n.at[m.addr] = m
		done := make(chan struct{})
		go func() { defer close(done); _ = m.server.Serve(m.listener) }()
		t.Cleanup(func() { m.server.Stop(); <-done })
	}
	return n
}

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	m, hold := n.at[addr], n.hold
	n.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if m == nil {
		return nil, errors.New("no listener at " + addr)
	}
	conn, err := m.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, &fadingConn{Conn: conn})
	return n.conns[len(n.conns)-1], nil
}

// blackhole makes all existing connections drop all data, like a firewall without their state.
func (n *network) blackhole() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.faded.Store(true)
	}
}

// A fadingConn is a connection that may die without an error.
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

func (m *manager) Hold(stream grpc.BidiStreamingServer[request, response]) error {
	m.mu.Lock()
	m.streams++
	m.opened++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.streams--
	}()
	for n := 1; ; n++ {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.received = append(m.received, r.GetSeq())
		m.mu.Unlock()
		if m.replies {
			if err := stream.Send(&response{Version: uint32(r.GetSeq())}); err != nil {
				return err
			}
		}
		if n == m.endAfter {
			return nil
		}
	}
}

// state returns the received sequence numbers, and the numbers of open streams and of all streams so far.
func (m *manager) state() (received []uint64, streams, opened int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]uint64(nil), m.received...), m.streams, m.opened
}

// A client is a link that records received messages and failures.
type client struct {
	*Link[request, response]
	mu      sync.Mutex
	replies map[string][]uint32
	downs   map[string]int
	why     map[string]error

	unresolved map[string]error // by target
}

func (n *network) client(cfg Config[request, response]) *client {
	c := &client{replies: make(map[string][]uint32), downs: make(map[string]int), why: make(map[string]error), unresolved: make(map[string]error)}
	cfg.DialOptions = []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial),
	}
	cfg.Open = func(ctx context.Context, conn grpc.ClientConnInterface) (Stream[request, response], error) {
		return leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	}
	cfg.Receive = func(from string, r *response) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.replies[from] = append(c.replies[from], r.GetVersion())
	}
	cfg.Down = func(from string, why error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.downs[from]++
		c.why[from] = why
	}
	cfg.Unresolved = func(target string, why error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unresolved[target] = why
	}
	var err error
	if c.Link, err = New(cfg); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Close)
	return c
}

func (c *client) lastDown(from string) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.downs[from], c.why[from]
}

func message(seq uint64) *request { return &request{Seq: seq} }
