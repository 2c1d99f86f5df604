package leasehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A failure is the response to a request that was not forwarded, or has no response.
type failure struct {
	status int
	kind   leasehold.Kind
	text   string
	again  bool // not executed: with Retry-After
}

// failureOf returns the response for an error. It does not contain servers and their
// addresses: those are in the log.
func failureOf(err error) failure {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return failure{
			status: http.StatusRequestEntityTooLarge, kind: leasehold.ErrInvalid,
			text: fmt.Sprintf("the request's body has more than %d bytes: send less, or raise the gateway's limit", tooLong.Limit),
		}
	}
	if mistake := (*otherKey)(nil); errors.As(err, &mistake) {
		// An error in the configuration of the gateway, not of the caller.
		return failure{status: http.StatusInternalServerError, kind: leasehold.ErrInvalid, text: mistake.Error()}
	}
	kind := leasehold.KindOf(err)
	switch text, again := notExecuted[kind]; {
	case again:
		return failure{status: http.StatusServiceUnavailable, kind: kind, text: text, again: true}
	case kind != leasehold.ErrInvalid:
		return indeterminateFailure(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failure{status: http.StatusRequestTimeout, kind: kind, text: "the request's body was not received in time"}
	}
	return failure{status: http.StatusBadRequest, kind: kind, text: err.Error()}
}

// notExecuted has the kinds of errors after which a request may be retried, and their texts.
var notExecuted = map[leasehold.Kind]string{
	leasehold.ErrNoOwner:   "the key has no owner at present, and the request was not executed: retry it",
	leasehold.ErrNotOwner:  "no server that was tried owns the key, and the request was not executed: retry it",
	leasehold.ErrSuspended: "the owner of the key waits for a manager and keeps its state, and the request was not executed: retry it",
	leasehold.ErrLimit:     "the owner of the key has too many outstanding requests, and the request was not executed: send fewer at a time",
	leasehold.ErrClosed:    "the gateway is stopping, and the request was not executed: retry it",
}

// withSilence adds the time since the last message of a manager, if it may be the cause:
// without a manager a key gets no new owner.
func (v failure) withSilence(silence time.Duration) failure {
	if silence > 0 && (v.kind == leasehold.ErrNoOwner || v.kind == leasehold.ErrNotOwner) {
		v.text += fmt.Sprintf("; the gateway has had no message from a manager for %v, and keys get no new owner without one", silence.Round(time.Second))
	}
	return v
}

// indeterminateFailure is the failure of a request that may have been executed.
func indeterminateFailure(err error) failure {
	v := failure{
		status: http.StatusBadGateway, kind: leasehold.ErrIndeterminate,
		text: "the owner of the key did not respond, or lost the key, and the request may have been executed: retry it if it is idempotent",
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		v.status, v.text = http.StatusGatewayTimeout, "the owner of the key did not respond in time, and the request may have been executed"
	case errors.Is(err, context.Canceled):
		v.status, v.text = http.StatusServiceUnavailable, "the gateway is stopping, and the request may have been executed"
	}
	return v
}

func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := failureOf(err).withSilence(p.cfg.Transport.cfg.Lookup.Silence())
	p.metrics.failed(v.kind)
	if r.Context().Err() == nil { // the caller is still connected
		p.logFailure(r, v, err)
	}
	h := w.Header()
	h.Set(HeaderError, kindName(v.kind))
	if v.again {
		h.Set("Retry-After", "1")
	}
	explain(w, v.status, v.kind, v.text)
}

// logFailure logs a failure, at level debug if it is the caller's.
func (p *Proxy) logFailure(r *http.Request, v failure, err error) {
	if v.status < http.StatusInternalServerError {
		p.cfg.Logger.Debug("request rejected", "status", v.status, "why", err)
		return
	}
	if more, ok := p.failures.Allow(struct{}{}, 1); ok {
		p.cfg.Logger.Warn("request failed", "status", v.status, "method", clip(r.Method), "why", err, "and more since the last line", more)
	}
}
