package leasehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/watcher"
)

// A call is a request with its attempts, which are sequential.
type call struct {
	transport     *Transport
	request       *http.Request
	key           leasehold.Key
	body          *body
	idempotent    bool
	mayBeExecuted bool // an attempt has ended of which nobody knows whether it was carried out

	response *http.Response // of the attempt that succeeded
}

// attempt sends the request to one server. [lookup.Lookup.Do] retries by the kind of its
// error.
func (c *call) attempt(_ context.Context, addr string) error {
	if err := c.transport.outstanding.begin(addr); err != nil {
		return err
	}
	// The response's body is read after this returns, and needs the context.
	ctx, cancel := context.WithCancelCause(c.request.Context())
	e := &exchange{outstanding: c.transport.outstanding, addr: addr, cancel: cancel}
	answer, err := c.send(ctx, e)
	if err == nil && errors.Is(context.Cause(ctx), watcher.ErrMoved) { // the response arrived when ctx was cancelled, and cannot be read
		_ = answer.Body.Close()
		err = watcher.ErrMoved
	}
	if err != nil {
		e.finishAttempt()
		return c.failed(addr, context.Cause(ctx), err)
	}
	if err := c.keyMismatch(answer); err != nil {
		discard(answer.Body)
		e.finishAttempt()
		return final{err}
	}
	if how := refused(answer); how != "" {
		discard(answer.Body)
		e.finishAttempt()
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

// watchOwner cancels an attempt that can be repeated when its key has moved. Others wait until
// their deadline.
func (c *call) watchOwner(e *exchange) (stop func()) {
	if !c.idempotent {
		return func() {}
	}
	return watcher.Owner(c.transport.cfg.Lookup, c.key, e.addr, func(cause error) {
		if c.body.replayable() {
			e.cancel(cause)
		}
	}).Stop
}

// failed returns the error of an attempt without a response. Unless it was never sent, it may
// have been executed.
func (c *call) failed(addr string, cause, err error) error {
	switch readError := c.body.readError(); {
	case readError != nil:
		return final{leasehold.Errorf("read body", leasehold.ErrInvalid, "", "the request's body was not received completely: %w", readError)}
	case c.request.Context().Err() != nil:
		c.mayBeExecuted = c.mayBeExecuted || !neverSent(err)
		return final{context.Cause(c.request.Context())}
	case errors.Is(cause, watcher.ErrMoved):
		c.mayBeExecuted = true
		return leasehold.Errorf("send", leasehold.ErrNotOwner, addr, "%w", watcher.ErrMoved)
	case !c.body.replayable():
		return final{leasehold.Errorf("send", leasehold.ErrIndeterminate, addr, "the request's body is too long for a retry: %w", err)}
	case neverSent(err):
		return leasehold.Errorf("send", leasehold.ErrNoOwner, addr, "the owner of the key is not reachable: %w", err)
	}
	c.mayBeExecuted = true
	return leasehold.Errorf("send", leasehold.ErrIndeterminate, addr, "%w", err)
}

func (c *call) refused(addr, how string) error {
	err := refusalError(addr, how)
	c.mayBeExecuted = c.mayBeExecuted || how == RefusedLost
	switch {
	case how == RefusedLost && !c.idempotent:
		return final{leasehold.Errorf("send", leasehold.ErrIndeterminate, addr, "%w, which may have been executed; a %s is not retried", err, c.request.Method)}
	case !c.body.replayable():
		return final{leasehold.Errorf("send", leasehold.KindOf(err), addr, "%w, and the request's body is too long for a retry", err)}
	}
	return err
}

// discard reads the rest of a short rejection, so that the connection can be reused.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10) // if it fails, the connection is not reused
	_ = body.Close()
}

// An exchange is an outstanding attempt, until its response body is closed.
type exchange struct {
	outstanding *outstanding
	addr        string
	cancel      context.CancelCauseFunc
	once        sync.Once
}

func (e *exchange) finishAttempt() {
	e.once.Do(func() {
		e.cancel(nil)
		e.outstanding.end(e.addr)
	})
}

// until returns a body that ends the exchange when it is closed. After a switch of protocols
// it can also be written to.
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
	defer b.exchange.finishAttempt()
	return b.ReadCloser.Close()
}

type upgraded struct {
	*answerBody
	io.Writer
}

// CloseWrite closes the writing side, if the connection supports that.
func (u *upgraded) CloseWrite() error { return closeWrite(u.Writer) }

func closeWrite(conn any) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
