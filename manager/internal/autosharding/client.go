package autosharding

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

type (
	request = pb.WatchShardingAssignmentRequest
	stream  = grpc.BidiStreamingServer[pb.WatchShardingAssignmentRequest, pb.WatchShardingAssignmentResponse]
)

// WatchShardingAssignment serves one stream of a client.
func (s *Service) WatchShardingAssignment(stream stream) error {
	err := s.admit()
	if err == nil {
		defer s.leave()
		err = (&client{service: s, stream: stream, sent: make(chan error, 1)}).serve(stream.Context())
	}
	if kind := leasehold.KindOf(err); kind != leasehold.Other {
		s.cfg.Refused(kind)
	}
	return wire.FromError(err)
}

// A client is one stream. Only the goroutine of its handler touches it.
type client struct {
	service *Service
	stream  stream
	addr    string
	uuid    string
	delivery

	feed    *feed // nil until the first request
	era     *era
	sending *assignment
	sent    chan error // result of sending
	timer   *time.Timer
	waiting bool // for a table
}

// serve handles a stream until it ends.
func (c *client) serve(ctx context.Context) error {
	if p, ok := peer.FromContext(ctx); ok {
		c.addr = p.Addr.String()
	}
	requests, received, done := make(chan *request), make(chan error, 1), make(chan struct{})
	c.service.running.Go(func() { received <- receive(c.stream, requests, done) })
	defer close(done)
	c.timer = time.NewTimer(greetingTimeout)
	defer c.timer.Stop()
	defer c.leave()
	for {
		updated, over, cut, sent := c.advance()
		select {
		case <-ctx.Done():
			return ctx.Err() // access control has the reason, if it ended the context
		case <-c.service.ctx.Done():
			return leasehold.Errorf("watch assignment", leasehold.ErrUnavailable, c.service.cfg.Self, "this manager is shutting down")
		case err := <-received:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case r := <-requests:
			if err := c.handle(r); err != nil {
				return err
			}
		case err := <-sent:
			if err != nil {
				return err
			}
			c.finishSending()
		case <-updated:
		case <-over:
			return c.era.why
		case <-cut:
			return c.late("the client has not read an assignment while many newer ones were published")
		case <-c.timer.C:
			return c.timeout()
		}
	}
}

// receive passes the requests of a stream on, until the stream ends or its handler is done.
func receive(from stream, to chan<- *request, done <-chan struct{}) error {
	for {
		r, err := from.Recv()
		if err != nil {
			return err
		}
		select {
		case to <- r:
		case <-done:
			return nil
		}
	}
}

// advance begins to send an assignment if the client may have a newer one, and returns what the
// handler waits for.
func (c *client) advance() (updated, over, cut <-chan struct{}, sent <-chan error) {
	if c.feed == nil {
		return nil, nil, nil, nil
	}
	a, updated, known := c.feed.acquire(&c.delivery)
	if c.waiting && known {
		c.waiting = false
		c.timer.Stop()
	}
	if a != nil {
		c.begin(a)
	}
	if c.sending != nil {
		cut, sent = c.sending.cut, c.sent
	}
	return updated, c.era.over, cut, sent
}

// begin sends an assignment on another goroutine, because a client that does not read blocks it.
func (c *client) begin(a *assignment) {
	c.sending = a
	c.timer.Reset(sendTimeout)
	result, out := c.sent, c.stream
	c.service.running.Go(func() { result <- send(out, a.messages) })
}

func send(to stream, messages [][]byte) error {
	for _, m := range messages {
		if err := to.SendMsg(wire.NewFrame(m)); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) finishSending() {
	c.feed.release(c.sending)
	c.sending = nil
	c.delivery.sent()
	c.service.record(c.feed.ns, func(st *Stats) { st.Sent++ })
	c.timer.Stop()
	if c.phase == unacked {
		c.timer.Reset(ackTimeout)
	}
}

// handle handles a request.
func (c *client) handle(r *request) error {
	if c.feed == nil {
		return c.greet(r)
	}
	switch kind := r.GetKind().(type) {
	case *pb.WatchShardingAssignmentRequest_AssignmentAck:
		if err := c.ack(kind.AssignmentAck); err != nil {
			return err
		}
		if c.phase == ready {
			c.timer.Stop()
		}
		c.service.recordAck(c, kind.AssignmentAck)
		return nil
	case *pb.WatchShardingAssignmentRequest_LoadReport:
		if err := checkLoads(kind.LoadReport); err != nil {
			return err
		}
		c.service.record(c.feed.ns, func(st *Stats) { st.Reports++ })
		return nil
	case *pb.WatchShardingAssignmentRequest_InitialClientConfig:
		return invalid("initial_client_config must be the first request of a stream, and only that")
	}
	return invalid("a request without content, or of an unknown kind")
}

func (c *client) greet(r *request) error {
	first, err := c.delivery.greet(r)
	if err != nil {
		return err
	}
	f, err := c.service.join(leasehold.Namespace(first.GetTarget()))
	if err != nil {
		return err
	}
	c.feed, c.era, c.uuid, c.waiting = f, f.currentEra(), first.GetClientUuid(), true
	c.timer.Reset(tableTimeout)
	c.service.record(f.ns, func(st *Stats) { st.Clients++ })
	return nil
}

func (c *client) leave() {
	if c.feed == nil {
		return
	}
	if c.sending != nil {
		c.feed.release(c.sending)
	}
	c.service.part(c.feed)
	c.service.record(c.feed.ns, func(st *Stats) { st.Clients-- })
	if c.feed.missing() {
		c.service.forget(c.feed.ns)
	}
}

// timeout returns the error of a client, or of this manager, that has made no progress.
func (c *client) timeout() error {
	switch {
	case c.phase == greeting:
		return c.late("no request in %v", greetingTimeout)
	case c.waiting:
		return leasehold.Errorf("watch assignment", leasehold.ErrUnavailable, string(c.feed.ns), "this manager has no table yet")
	case c.phase == sending:
		return c.late("the client has not read the assignment in %v", sendTimeout)
	}
	return c.late("no acknowledgement of generation %d in %v", c.generation, ackTimeout)
}

// late returns the error of a client that is too slow.
func (c *client) late(format string, args ...any) error {
	return leasehold.Errorf("watch assignment", leasehold.ErrUnavailable, c.addr, format, args...)
}
