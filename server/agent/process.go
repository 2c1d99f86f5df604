package agent

import (
	"context"
	"net"

	"github.com/leasehold-dev/leasehold"
)

// withConn adds the connection of a request to its context.
func withConn(ctx context.Context, c net.Conn) context.Context {
	for {
		if _, ok := c.(*net.UnixConn); ok {
			return context.WithValue(ctx, connKey{}, c)
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = wrapper.NetConn()
	}
}

type connKey struct{}

// unixConnOf returns the Unix socket of a request; nil if it came over TCP.
func unixConnOf(ctx context.Context) *net.UnixConn {
	c, _ := ctx.Value(connKey{}).(*net.UnixConn)
	return c
}

// processOf returns the process that has connected the socket of a request.
func processOf(ctx context.Context) (*process, error) {
	conn := unixConnOf(ctx)
	if conn == nil {
		return nil, bad("process", "needs a connection over a unix: socket, whose process the agent can identify")
	}
	p, err := openProcess(conn)
	if err != nil {
		return nil, leasehold.Errorf("join", leasehold.ErrInvalid, "process", "the agent cannot wait for the end of this process: %w", err)
	}
	return p, nil
}

// admit rejects requests over connections of other processes; an inherited connection counts as that of the process
// that has connected it: the promises of their answers would be ended with the process
// that has joined.
func (p *process) admit(ctx context.Context) error {
	if p == nil || p.owns(unixConnOf(ctx)) {
		return nil
	}
	return leasehold.Errorf("owner", leasehold.ErrDenied, "process", `only the process that joined with "process" may use its id; join without it to share the id`)
}

// guardProcess ends the session when its process has ended. Nothing of the program acts on leases any more, so
// its promises end too.
func (s *session) guardProcess() {
	defer s.process.close()
	stopped := make(chan struct{})
	defer func() { <-stopped }()
	go func() {
		defer close(stopped)
		<-s.over
		s.process.interrupt()
	}()
	if s.process.awaitEnd() {
		s.end("its process has ended")
		s.owner.EndPromises()
	}
	<-s.over
}
