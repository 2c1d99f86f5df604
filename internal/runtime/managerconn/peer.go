package managerconn

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// A peer is one manager that is spoken to: a goroutine, a connection, and
// while there is a conversation a second goroutine that listens.
type peer[Req, Resp any] struct {
	link    *Link[Req, Resp]
	addr    string
	ctx     context.Context // ends when the link is closed or the peer replaced
	cancel  context.CancelFunc
	mailbox chan *Req // holds the newest message that has not left
	used    uint64    // when it was last spoken to; guarded by the link's lock
	silence silence

	conn *grpc.ClientConn // nil until the first message
	talk *talk[Req, Resp] // nil while there is no conversation
}

// talk is one conversation.
type talk[Req, Resp any] struct {
	stream Stream[Req, Resp]
	cancel context.CancelFunc
	ended  chan error // gets the reason, once
}

func newPeer[Req, Resp any](l *Link[Req, Resp], addr string) *peer[Req, Resp] {
	p := &peer[Req, Resp]{link: l, addr: addr, mailbox: make(chan *Req, 1)}
	p.ctx, p.cancel = context.WithCancel(l.ctx) //nolint:gosec // whoever drops the peer calls it
	return p
}

// leave puts a message into the mailbox, in place of one that is still there.
// The caller holds the link's lock, so that nobody else puts one in. A
// conversation that this message finds to be dead is cut off before it is there
// to be sent.
func (p *peer[Req, Resp]) leave(message *Req) {
	p.silence.say()
	select {
	case <-p.mailbox:
	default:
	}
	p.mailbox <- message
}

// run sends what is left in the mailbox until the peer is no longer needed.
func (p *peer[Req, Resp]) run() {
	defer p.cancel()
	defer p.hangUp()
	idle := time.NewTimer(p.link.cfg.Idle)
	defer idle.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case message := <-p.mailbox:
			p.say(message)
			idle.Reset(p.link.cfg.Idle)
		case why := <-p.talkEnded():
			p.over(why)
		case <-idle.C:
			if p.link.retire(p) {
				return
			}
			idle.Reset(p.link.cfg.Idle)
		}
	}
}

// say sends a message, and begins a conversation if there is none.
func (p *peer[Req, Resp]) say(message *Req) {
	if p.talk != nil && p.silence.broken() {
		p.over(<-p.talk.ended)
	}
	if p.talk == nil {
		if err := p.begin(); err != nil {
			p.report(err)
			return
		}
	}
	if err := p.talk.stream.Send(message); err != nil {
		p.talk.cancel()
		why := <-p.talk.ended
		if !errors.Is(err, io.EOF) {
			why = err // the message itself; otherwise the listener knows more
		}
		p.over(why)
	}
}

// begin opens a conversation. It waits for the connection, or for gRPC to say
// that there is none to be had.
func (p *peer[Req, Resp]) begin() error {
	if p.conn == nil {
		conn, err := dial(p.addr, p.link.cfg.DialOptions)
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
	t := &talk[Req, Resp]{stream: stream, cancel: cancel, ended: make(chan error, 1)}
	p.talk = t
	p.silence.begin(cancel)
	p.link.ended.Go(func() { t.ended <- p.listen(stream) })
	failpoint.Here("link/connected")
	return nil
}

// listen receives until the conversation ends, and returns why it did.
func (p *peer[Req, Resp]) listen(stream Stream[Req, Resp]) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		p.silence.hear()
		p.link.cfg.Receive(p.addr, message)
	}
}

// talkEnded is the channel that says why the conversation ended; nil, on which
// nothing ever comes, if there is none.
func (p *peer[Req, Resp]) talkEnded() <-chan error {
	if p.talk == nil {
		return nil
	}
	return p.talk.ended
}

// over clears away a conversation that has ended, and with one that was cut off
// its connection.
func (p *peer[Req, Resp]) over(why error) {
	failpoint.Here("link/broken")
	p.talk.cancel()
	p.talk = nil
	if p.silence.end() {
		p.dropConn()
		return
	}
	p.report(why)
}

// dropConn closes the connection, so that the next message makes a new one. It
// does not wait: gRPC tries to say goodbye first, which takes seconds if nothing
// gets through.
func (p *peer[Req, Resp]) dropConn() {
	p.link.cfg.Logger.Debug("connection to manager dropped: it has not answered", "manager", p.addr)
	conn := p.conn
	p.conn = nil
	p.link.ended.Go(func() { _ = conn.Close() }) // it fails only if it is closed already
}

// report says why there is no conversation, unless we have ended it ourselves.
func (p *peer[Req, Resp]) report(why error) {
	if p.ctx.Err() != nil {
		return
	}
	if errors.Is(why, io.EOF) {
		why = leasehold.Errorf("link", leasehold.ErrUnavailable, p.addr, "the manager ended the conversation")
	}
	p.link.down(p.addr, why)
}

// hangUp ends the conversation and the connection. The listener returns
// because its stream's context ends with the peer's.
func (p *peer[Req, Resp]) hangUp() {
	p.cancel()
	if p.talk != nil {
		p.talk.cancel()
		<-p.talk.ended
	}
	if p.conn != nil {
		_ = p.conn.Close() // it fails only if it is closed already
	}
}
