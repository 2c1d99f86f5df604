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

// A verdict is how a caller is told that its request was not forwarded, or has
// no answer.
type verdict struct {
	status int
	kind   leasehold.Kind
	text   string
	// again says that nothing was done about the request, and that it may be
	// worth while to send it again soon.
	again bool
}

// judge makes a verdict from an error. It says nothing about servers and their
// addresses: that is in the log.
func judge(err error) verdict {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return verdict{
			status: http.StatusRequestEntityTooLarge, kind: leasehold.ErrInvalid,
			text: fmt.Sprintf("the body of a request may have %d bytes: send less, or have the gateway's bound raised", tooLong.Limit),
		}
	}
	if mistake := (*otherKey)(nil); errors.As(err, &mistake) {
		// Whoever called can do nothing about it: it is for those who run the gateway.
		return verdict{status: http.StatusInternalServerError, kind: leasehold.ErrInvalid, text: mistake.Error()}
	}
	kind := leasehold.KindOf(err)
	switch text, again := notCarriedOut[kind]; {
	case again:
		return verdict{status: http.StatusServiceUnavailable, kind: kind, text: text, again: true}
	case kind != leasehold.ErrInvalid:
		return unanswered(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return verdict{status: http.StatusRequestTimeout, kind: kind, text: "the body of the request did not come"}
	}
	return verdict{status: http.StatusBadRequest, kind: kind, text: err.Error()}
}

// notCarriedOut are the kinds of errors after which a request may be sent again, and what
// its caller is told.
var notCarriedOut = map[leasehold.Kind]string{
	leasehold.ErrNoOwner:   "nobody owns the key for now, and the request was not carried out: send it again",
	leasehold.ErrNotOwner:  "no server that was asked owns the key, and the request was not carried out: send it again",
	leasehold.ErrSuspended: "the owner of the key waits for a manager and keeps its state, and the request was not carried out: send it again",
	leasehold.ErrLimit:     "too many requests are under way to the owner of the key, and this one was not carried out: send fewer at a time",
	leasehold.ErrClosed:    "the gateway is stopping, and the request was not carried out: send it again",
}

// amid adds to a verdict for how long no manager has been heard of, if that may be why:
// who owns a key, they decide.
func (v verdict) amid(silence time.Duration) verdict {
	if silence > 0 && (v.kind == leasehold.ErrNoOwner || v.kind == leasehold.ErrNotOwner) {
		v.text += fmt.Sprintf("; the gateway has heard of no manager for %v, and keys get no new owner while they are away", silence.Round(time.Second))
	}
	return v
}

// unanswered is the verdict on a request that was sent, and may have been carried
// out.
func unanswered(err error) verdict {
	v := verdict{
		status: http.StatusBadGateway, kind: leasehold.ErrIndeterminate,
		text: "the owner of the key did not answer, or lost the key, and may have carried the request out: send it again if it does no harm twice",
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		v.status, v.text = http.StatusGatewayTimeout, "the owner of the key did not answer in time, and may have carried the request out"
	case errors.Is(err, context.Canceled):
		v.status, v.text = http.StatusServiceUnavailable, "the gateway is stopping, and the request may have been carried out"
	}
	return v
}

func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := judge(err).amid(p.cfg.Transport.cfg.Lookup.Silence())
	p.metrics.failed(v.kind)
	if r.Context().Err() == nil { // a caller that has gone is no failure
		p.note(r, v, err)
	}
	h := w.Header()
	h.Set(HeaderError, kindName(v.kind))
	if v.again {
		h.Set("Retry-After", "1")
	}
	explain(w, v.status, v.kind, v.text)
}

// note logs a failure. One that is the caller's is of interest only to those who
// look for it.
func (p *Proxy) note(r *http.Request, v verdict, err error) {
	if v.status < http.StatusInternalServerError {
		p.cfg.Logger.Debug("a request was refused", "status", v.status, "why", err)
		return
	}
	if more, ok := p.failures.Allow(struct{}{}, 1); ok {
		p.cfg.Logger.Warn("a request failed", "status", v.status, "method", clip(r.Method), "why", err, "and more since the last line", more)
	}
}
