package managerconn

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// A peer is one manager: a goroutine, a connection, and a second goroutine that receives while a stream is
// open.
type peer[Req, Resp any] struct {
	link     *Link[Req, Resp]
	addr     string
	ctx      context.Context // ends when the link is closed or the peer replaced
	cancel   context.CancelFunc
	queue    chan *Req // capacity 1: the newest unsent message
	lastSend uint64    // Link.sends at the last message; guarded by the link's mutex
	liveness liveness

	conn   *grpc.ClientConn       // nil until the first message
	stream *openStream[Req, Resp] // nil if none is open
}

// An openStream is a stream with its receiving goroutine.
type openStream[Req, Resp any] struct {
	stream Stream[Req, Resp]
	cancel context.CancelFunc
	ended  chan error // receives the reason, once
}

func newPeer[Req, Resp any](l *Link[Req, Resp], addr string) *peer[Req, Resp] {
	p := &peer[Req, Resp]{link: l, addr: addr, queue: make(chan *Req, 1)}
	p.ctx, p.cancel = context.WithCancel(l.ctx) //nolint:gosec // run calls it
	return p
}

// enqueue replaces the queued message. It aborts the stream first if the manager has not replied for too
// long. The link's mutex is held, so there is one sender on the channel.
func (p *peer[Req, Resp]) enqueue(message *Req) {
	p.liveness.sent()
	select {
	case <-p.queue:
	default:
	}
	p.queue <- message
}

// run sends queued messages until the peer is retired, evicted or closed.
func (p *peer[Req, Resp]) run() {
	defer p.cancel()
	defer p.close()
	idle := time.NewTimer(p.idleTimeout())
	defer idle.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case message := <-p.queue:
			p.send(message)
			idle.Reset(p.idleTimeout())
		case err := <-p.streamEnded():
			p.ended(err)
		case <-idle.C:
			if p.link.retire(p) {
				return
			}
			idle.Reset(p.idleTimeout())
		}
	}
}

// idleTimeout is random, because many clients open connections at once: to all managers, when they have lost their leader.
func (p *peer[Req, Resp]) idleTimeout() time.Duration {
	return p.link.cfg.Idle + rand.N(p.link.cfg.Idle) //nolint:gosec // no secret
}

// send sends a message, and opens a stream if there is none.
func (p *peer[Req, Resp]) send(message *Req) {
	if p.stream != nil && p.liveness.wasAborted() {
		p.ended(<-p.stream.ended)
	}
	if p.stream == nil {
		if err := p.open(); err != nil {
			p.report(err)
			return
		}
	}
	if err := p.stream.stream.Send(message); err != nil {
		p.stream.cancel()
		reason := <-p.stream.ended
		if !errors.Is(err, io.EOF) {
			reason = err // an invalid message; for io.EOF the receiver has the reason
		}
		p.ended(reason)
	}
}

// open opens a stream. It blocks until the connection is established or has failed.
func (p *peer[Req, Resp]) open() error {
	if p.conn == nil {
		conn, err := dial(p.addr, p.link.cfg.Resolver, p.link.cfg.DialOptions)
		if err != nil {
			return err
		}
		p.conn = conn
	}
	failpoint.Here("link/before-connecting")
	ctx, cancel := context.WithCancel(p.ctx)
	stream, err := p.link.cfg.Open(ctx, p.conn)
	if err != nil {
		cancel()
		return err
	}
	t := &openStream[Req, Resp]{stream: stream, cancel: cancel, ended: make(chan error, 1)}
	p.stream = t
	p.liveness.start(cancel)
	p.link.running.Go(func() { t.ended <- p.receive(stream) })
	failpoint.Here("link/connected")
	return nil
}

// receive receives messages until the stream ends, and returns the reason.
func (p *peer[Req, Resp]) receive(stream Stream[Req, Resp]) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		p.liveness.received()
		p.link.cfg.Receive(p.addr, message)
	}
}

// streamEnded returns the channel for the end of the stream, nil if none is open.
func (p *peer[Req, Resp]) streamEnded() <-chan error {
	if p.stream == nil {
		return nil
	}
	return p.stream.ended
}

// ended removes a stream that has ended, and its connection if the stream was aborted.
func (p *peer[Req, Resp]) ended(err error) {
	failpoint.Here("link/broken")
	p.stream.cancel()
	p.stream = nil
	if p.liveness.stop() {
		p.dropConn()
		return
	}
	p.report(err)
}

// dropConn closes the connection, so that the next message opens a new one. It does not wait: gRPC's graceful close
// takes seconds on a dead connection.
func (p *peer[Req, Resp]) dropConn() {
	p.link.cfg.Logger.Debug("connection to manager dropped: no reply", "manager", p.addr)
	conn := p.conn
	p.conn = nil
	p.link.running.Go(func() { _ = conn.Close() }) // it fails only if it is closed already
}

// report reports the reason why no stream is open, unless the peer was closed.
func (p *peer[Req, Resp]) report(err error) {
	if p.ctx.Err() != nil {
		return
	}
	if errors.Is(err, io.EOF) {
		err = leasehold.Errorf("link", leasehold.ErrUnavailable, p.addr, "the manager ended the stream")
	}
	p.link.down(p.addr, err)
}

// close closes stream and connection. The receiving goroutine ends because the context of the stream ends
// with that of the peer.
func (p *peer[Req, Resp]) close() {
	p.cancel()
	if p.stream != nil {
		p.stream.cancel()
		<-p.stream.ended
	}
	if p.conn != nil {
		_ = p.conn.Close() // it fails only if it is closed already
	}
}
