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
	defer c.watch(e)()
	return c.transport.cfg.Base.RoundTrip(out)
}

// patience is how often an attempt without an answer looks whether its server
// still has the key, and so how long an answer may be under way that was given
// while it had.
const patience = time.Second

// watch gives an attempt up whose key has gone to another server, if it can be
// made again: a server that is stopped or cut off keeps its connections and says
// nothing, and its callers would wait for it as long as they live. It costs a
// timer, and nothing runs unless the answer takes longer than a second.
func (c *call) watch(e *exchange) (stop func()) {
	if !c.repeatable {
		return func() {}
	}
	w := &watcher{call: c, exchange: e}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(patience, w.look)
	return w.stop
}

type watcher struct {
	call     *call
	exchange *exchange

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	moved   bool // when it last looked
}

func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	addr, ok := w.call.transport.cfg.Lookup.Find(w.call.key)
	moved := ok && addr != w.exchange.addr
	if moved && w.moved && w.call.body.whole() {
		w.exchange.cancel(errMoved)
		return
	}
	w.moved = moved
	w.timer.Reset(patience)
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
	return unreached(addr, err)
}

// refused judges a refusal.
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
	if stream, ok := body.(io.ReadWriteCloser); ok {
		return &upgraded{stream, e}
	}
	return &answerBody{body, e}
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
	io.ReadWriteCloser
	exchange *exchange
}

func (u *upgraded) Close() error {
	defer u.exchange.over()
	return u.ReadWriteCloser.Close()
}

// CloseWrite tells the server that no more will come, if the connection can.
func (u *upgraded) CloseWrite() error {
	if c, ok := u.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
