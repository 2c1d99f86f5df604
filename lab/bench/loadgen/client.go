package loadgen

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

type session interface {
	Begin()  // on the first connection
	Resume() // on later connections
	End()
	receive(message []byte)
}

// A client is a connection and the session that uses it. It reconnects when the connection
// breaks, to the next manager if there are several.
type client struct {
	all      *Clients
	managers []string
	number   int
	method   string
	enter    func() (session, error) // makes a new session

	mu      sync.Mutex // guards the following
	conn    *connection
	session session
	stop    context.CancelFunc
	done    chan struct{}
}

// A connection has one stream.
type connection struct {
	*grpc.ClientConn
	stream grpc.ClientStream
}

func (c *client) open() error {
	s, err := c.enter()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	c.mu.Lock()
	c.session, c.stop, c.done = s, stop, make(chan struct{})
	c.mu.Unlock()
	go c.serve(ctx, s)
	return nil
}

// serve connects and reconnects until it is stopped.
func (c *client) serve(ctx context.Context, s session) {
	defer close(c.done)
	next, failures := s.Begin, 0
	for at := c.number; ctx.Err() == nil; at++ {
		failures++
		if conn, err := c.connect(ctx, at); err == nil {
			failures = 0
			c.set(conn)
			next()
			next = s.Resume
			for err == nil {
				var message []byte
				if err = conn.stream.RecvMsg(&message); err == nil {
					s.receive(message)
				}
			}
			c.set(nil)
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.backoff(failures)):
		}
	}
}

func (c *client) connect(ctx context.Context, at int) (*connection, error) {
	conn, err := Dial(c.managers[at%len(c.managers)], &c.all.traffic)
	if err != nil {
		return nil, err
	}
	stream, err := Open(ctx, conn, c.method)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &connection{conn, stream}, nil
}

// backoff returns the pause before the next connection, after a number of consecutive
// failures: that of the lookup library.
func (c *client) backoff(failures int) time.Duration {
	return jitter(min(retry<<min(failures, 6), poll))
}

func (c *client) set(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
}

// send sends a message, if there is a connection. The receiver notices a broken one.
func (c *client) send(m proto.Message) {
	b, _ := proto.Marshal(m) // cannot fail
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.stream.SendMsg(b)
	}
}

// disconnect replaces the connection.
func (c *client) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// leaveLimit is the timeout of an owner's Leave.
const leaveLimit = 15 * time.Second

// restart replaces the session. An owner leaves first.
func (c *client) restart() error {
	s := c.current()
	if o, ok := s.(*ownerSession); ok {
		select {
		case <-o.leave():
		case <-time.After(leaveLimit):
		}
	}
	c.close()
	return c.open()
}

func (c *client) close() {
	c.current().End()
	c.stop()
	<-c.done
}

func (c *client) current() session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}
