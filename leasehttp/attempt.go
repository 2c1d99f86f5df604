package leasehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A call is a request on its way, in one attempt after the other.
type call struct {
	transport  *Transport
	request    *http.Request
	key        leasehold.Key
	body       *body
	repeatable bool // it does no harm if it is carried out twice
	maybe      bool // an attempt has ended of which nobody knows whether it was carried out

	response *http.Response // of the attempt that succeeded
}

// attempt sends the request to one server. It returns an error of a kind that
// has [lookup.Lookup.Do] try again only if that is allowed.
func (c *call) attempt(_ context.Context, addr string) error {
	if err := c.transport.outstanding.begin(addr); err != nil {
		return err
	}
	// The answer's body is read after this has returned, and needs the context.
	ctx, cancel := context.WithCancelCause(c.request.Context())
	e := &exchange{outstanding: c.transport.outstanding, addr: addr, cancel: cancel}
	answer, err := c.send(ctx, e)
	if err == nil && errors.Is(context.Cause(ctx), errMoved) { // it came this very moment, and cannot be read
		_ = answer.Body.Close()
		err = errMoved
	}
	if err != nil {
		e.over()
		return c.failed(addr, context.Cause(ctx), err)
	}
	if err := c.misread(answer); err != nil {
		discard(answer.Body)
		e.over()
		return final{err}
	}
	if how := refused(answer); how != "" {
		discard(answer.Body)
		e.over()
		return c.refused(addr, how)
	}
	answer.Request = c.request
	answer.Body = e.until(answer.Body)
	c.response = answer
	return nil
}

func (c *call) send(ctx context.Context, e *exchange) (*http.Response, error) {
	out, err := c.outgoing(ctx, e.addr)
	if err != nil {
		return nil, err
	}
	defer c.watchOwner(e)()
	return c.transport.cfg.Base.RoundTrip(out)
}

// patience is how often an attempt without an answer looks whether its server
// still has the key, and so how long an answer may be under way that was given
// while it had.
const patience = time.Second

// watchOwner gives an attempt up whose key has gone to another server, if it can be
// made again: a server that is stopped or cut off keeps its connections and says
// nothing, and its callers would wait for it as long as they live. It costs a
// timer, and nothing runs unless the answer takes longer than a second.
func (c *call) watchOwner(e *exchange) (stop func()) {
	if !c.repeatable {
		return func() {}
	}
	movedBefore := false
	w := watch(patience, func() (again bool) {
		addr, ok := c.transport.cfg.Lookup.Find(c.key)
		moved := ok && addr != e.addr
		if moved && movedBefore && c.body.whole() {
			e.cancel(errMoved)
			return false
		}
		movedBefore = moved
		return true
	})
	return w.stop
}

// A watcher looks from time to time until it is stopped, or look returns false.
type watcher struct {
	look  func() (again bool)
	every time.Duration

	mu      sync.Mutex // is held while it looks
	timer   *time.Timer
	stopped bool
}

func watch(every time.Duration, look func() (again bool)) *watcher {
	w := &watcher{look: look, every: every}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(every, w.fire)
	return w
}

func (w *watcher) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.stopped = !w.look(); !w.stopped {
		w.timer.Reset(w.every)
	}
}

func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// failed judges an attempt that has no answer. Whether the server has carried the
// request out is unknown, unless it was never sent.
func (c *call) failed(addr string, cause, err error) error {
	switch broken := c.body.broken(); {
	case broken != nil:
		return final{leasehold.Errorf("read body", leasehold.ErrInvalid, "", "the request was not received in full: %w", broken)}
	case c.request.Context().Err() != nil:
		c.maybe = c.maybe || !neverSent(err)
		return final{context.Cause(c.request.Context())}
	case errors.Is(cause, errMoved):
		c.maybe = true
		return leasehold.Errorf("send", leasehold.ErrNotOwner, addr, "%w", errMoved)
	case !c.body.whole():
		return final{leasehold.Errorf("send", leasehold.ErrIndeterminate, addr, "its body is too long to be sent again: %w", err)}
	case neverSent(err):
		return leasehold.Errorf("send", leasehold.ErrNoOwner, addr, "the owner of the key is not there: %w", err)
	}
	c.maybe = true
	return leasehold.Errorf("send", leasehold.ErrIndeterminate, addr, "%w", err)
}

func (c *call) refused(addr, how string) error {
	err := misrouted(addr, how)
	c.maybe = c.maybe || how == RefusedLost
	switch {
	case how == RefusedLost && !c.repeatable:
		return final{leasehold.Errorf("send", leasehold.ErrIndeterminate, addr, "%w, and may have carried it out; a %s is not sent again", err, c.request.Method)}
	case !c.body.whole():
		return final{leasehold.Errorf("send", leasehold.KindOf(err), addr, "%w, and the body of the request is too long to be sent again", err)}
	}
	return err
}

// discard reads the rest of a refusal, if it is short, so that the connection can
// be used again.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10) // what cannot be read is not needed
	_ = body.Close()
}

// An exchange is an attempt from when it is counted until its answer has been
// read.
type exchange struct {
	outstanding *outstanding
	addr        string
	cancel      context.CancelCauseFunc
	once        sync.Once
}

func (e *exchange) over() {
	e.once.Do(func() {
		e.cancel(nil)
		e.outstanding.end(e.addr)
	})
}

// until returns a body that ends the exchange when it is closed. One that can be
// written to, because the protocol was switched, still can.
func (e *exchange) until(body io.ReadCloser) io.ReadCloser {
	answer := &answerBody{body, e}
	if stream, ok := body.(io.ReadWriteCloser); ok {
		return &upgraded{answer, stream}
	}
	return answer
}

type answerBody struct {
	io.ReadCloser
	exchange *exchange
}

func (b *answerBody) Close() error {
	defer b.exchange.over()
	return b.ReadCloser.Close()
}

type upgraded struct {
	*answerBody
	io.Writer
}

// CloseWrite tells the server that no more will come, if the connection can.
func (u *upgraded) CloseWrite() error { return closeWrite(u.Writer) }

func closeWrite(conn any) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
