package broadcast

import (
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// A receiver is one stream with its queue.
type receiver struct {
	stream   grpc.ServerStream
	send     func(message) error // sends on stream
	ready    chan struct{}       // wakes the handler
	replaced chan struct{}       // closed when another stream replaces this one; nil if none can
	left     bool                // the handler has returned; guarded by the group's lock

	mu    sync.Mutex
	queue queue
}

// with changes the queue, and wakes the handler if it is needed then.
func (r *receiver) with(change func(*queue)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.queue)
	if r.queue.needsHandler() {
		select {
		case r.ready <- struct{}{}:
		default:
		}
	}
}

func (r *receiver) acquire() (ok bool) {
	r.with(func(q *queue) { ok = q.acquire() })
	return ok
}

func (r *receiver) takeReply() (m message, ok bool) {
	r.with(func(q *queue) { m, ok = q.takeReply() })
	return m, ok
}

// transmit sends a message on the stream.
func (r *receiver) transmit(m message) error {
	payload, err := m.payload()
	if err != nil {
		return err
	}
	return r.stream.SendMsg(payload)
}

// flush sends all messages, unless another goroutine is sending. After an error the queue stays
// acquired, so that no goroutine uses the broken stream.
func (r *receiver) flush() error {
	if !r.acquire() {
		return nil
	}
	for {
		var m message
		var ok bool
		r.with(func(q *queue) { m, ok = q.take() })
		if !ok {
			return nil
		}
		if err := r.send(m); err != nil {
			return err
		}
	}
}

// Respond calls step, which hands a request of this receiver to the machine and reports whether
// the machine has run. If so, Respond sends the reply on this goroutine, unless the reply is bulk
// or another goroutine is sending: then the handler sends it. An error ends the stream.
func (r *receiver) Respond(step func() bool) (ran bool, err error) {
	if !r.acquire() {
		return step(), nil
	}
	if ran = step(); ran {
		err = r.sendReply()
	}
	if err == nil {
		r.with(func(q *queue) { q.release(nil, false) })
	}
	return ran, err
}

// sendReply sends the reply if there is one. The caller has acquired the queue.
func (r *receiver) sendReply() error {
	m, ok := r.takeReply()
	switch {
	case !ok:
		return nil
	case m.bulk():
		r.with(func(q *queue) { q.returnReply(m) })
		return nil
	}
	return r.send(m)
}

// serve runs a stream until the peer closes it, a request is invalid, the stream's context ends, another
// stream replaces it, or the manager ends. The receiving goroutine ends with the gRPC stream, after the
// handler has returned; group.Close waits for it.
func serve[Req any](g *group, r *receiver, recv func() (*Req, error), handle func(*Req) error) error {
	ended := make(chan error, 1)
	g.running.Go(func() { ended <- receive(recv, handle) })
	ctx := r.stream.Context()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return wire.FromError(err)
		case <-ctx.Done():
			return wire.FromError(ctx.Err()) // access control has the reason, if it ended the context
		case <-r.replaced:
			return wire.FromError(leasehold.Errorf("serve", leasehold.ErrClosed, g.cfg.Self, "stream closed: a newer stream of this session has replaced it"))
		case <-g.done:
			return wire.FromError(leasehold.Errorf("serve", leasehold.ErrUnavailable, g.cfg.Self, "this manager is shutting down"))
		case <-r.ready:
			if err := r.flush(); err != nil {
				return err
			}
		}
	}
}

func receive[Req any](recv func() (*Req, error), handle func(*Req) error) error {
	for {
		request, err := recv()
		if err != nil {
			return err
		}
		if err := handle(request); err != nil {
			return err
		}
	}
}
