package leasehttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// Headers between gateways and servers: see the section "On the wire" of the package's
// documentation.
const (
	headerPrefix = "Leasehold-"

	// HeaderKey has the key by which a request was routed, in the form of
	// [leasehold.Key.String]; in a rejection, the key that the server derived.
	HeaderKey = "Leasehold-Key"
	// HeaderName has the name of the rejected key, escaped as in a query. It is omitted if
	// the name is unknown or long.
	HeaderName = "Leasehold-Name"
	// HeaderRefused marks a rejection by a server's lease check, as opposed to a response
	// of its application. Its value is [RefusedNotOwner], [RefusedSuspended], [RefusedLost]
	// or [RefusedOtherKey].
	HeaderRefused = "Leasehold-Refused"
	// HeaderError marks a response of a gateway itself. Its value is the kind of error that
	// the body explains.
	HeaderError = "Leasehold-Error"

	// RefusedNotOwner, with status 421: the server does not own the key and did not execute
	// the request, which may be sent to another server.
	RefusedNotOwner = "not-owner"
	// RefusedLost, with status 503: the server lost the key while it executed the request,
	// whose effects may be kept or lost. Only an idempotent request may be retried.
	RefusedLost = "lost"
	// RefusedOtherKey, with status 400: the key by which the request was routed differs from
	// the key that the server derives from it, because they use different sources. The
	// request was not executed.
	RefusedOtherKey = "other-key"
	// RefusedSuspended, with status 503 and Retry-After: the server's lease is suspended
	// because no manager responded in time. The request was not executed and may be retried
	// at the same server.
	RefusedSuspended = "suspended"
)

// reserved reports whether a header begins with headerPrefix. "_" counts as "-", because some
// programs do not distinguish them.
func reserved(name string) bool {
	const n = len(headerPrefix) - 1
	return len(name) > n && (name[n] == '-' || name[n] == '_') && strings.EqualFold(name[:n], headerPrefix[:n])
}

func strip(h http.Header) {
	for name := range h {
		if reserved(name) {
			delete(h, name)
		}
	}
}

// refused returns the value of HeaderRefused if a response is a rejection with the matching
// status, and "" if it is the application's.
func refused(r *http.Response) string {
	switch reason := r.Header.Get(HeaderRefused); {
	case reason == RefusedNotOwner && r.StatusCode == http.StatusMisdirectedRequest,
		(reason == RefusedLost || reason == RefusedSuspended) && r.StatusCode == http.StatusServiceUnavailable:
		return reason
	}
	return ""
}

// WriteError writes an error as the response, such as one of package leasemap or of an
// application that checks leases itself, and returns true. If err is nil it writes nothing
// and returns false.
//
//   - [leasehold.ErrNotOwner] is 421: the gateway or [Transport] retries at the current owner.
//     Return it only if nothing was executed. [Middleware] does so itself. If errors.As finds
//     an error with the method RefusedKey() (name string, key leasehold.Key), as those of
//     package leasemap have, the response contains that key, so that a request that was
//     routed by another key is detected.
//   - [leasehold.ErrSuspended] is 503 with Retry-After and [RefusedSuspended]: the request is
//     retried after a backoff. Return it only if nothing was executed.
//   - [leasehold.ErrIndeterminate] is 503 with [RefusedLost]: the request may have been
//     executed. Only idempotent requests are retried.
//   - [leasehold.ErrUnavailable] is 503 with Retry-After.
//   - The error of a body that is too long for [http.MaxBytesReader] is 413.
//   - [leasehold.ErrInvalid] is 400, [leasehold.ErrNotFound] 404, [leasehold.ErrExists] 409,
//     [leasehold.ErrStale] 412, [leasehold.ErrLimit] 503, and everything else 500.
//
// The response contains the text of errors of these kinds only. In a handler:
//
//	value, _, err := m.Get(name)
//	if leasehttp.WriteError(w, err) {
//		return
//	}
func WriteError(w http.ResponseWriter, err error) bool {
	if err != nil {
		writeError(w, err)
	}
	return err != nil
}

func writeError(w http.ResponseWriter, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		explain(w, http.StatusRequestEntityTooLarge, leasehold.ErrInvalid, fmt.Sprintf("the request's body is longer than %d bytes", tooLong.Limit))
		return
	}
	kind := leasehold.KindOf(err)
	answer, ok := errorStatuses[kind]
	if !ok {
		explain(w, http.StatusInternalServerError, leasehold.ErrInternal, "the server failed")
		return
	}
	if answer.refused != "" {
		w.Header().Set(HeaderRefused, answer.refused)
	}
	if answer.again {
		w.Header().Set("Retry-After", "1")
	}
	if kind == leasehold.ErrNotOwner || kind == leasehold.ErrSuspended {
		setRefusedKeyOf(w.Header(), err)
	}
	explain(w, answer.status, kind, err.Error())
}

var errorStatuses = map[leasehold.Kind]struct {
	status  int
	refused string // of HeaderRefused
	again   bool   // with Retry-After
}{
	leasehold.ErrNotOwner:      {status: http.StatusMisdirectedRequest, refused: RefusedNotOwner},
	leasehold.ErrSuspended:     {status: http.StatusServiceUnavailable, refused: RefusedSuspended, again: true},
	leasehold.ErrIndeterminate: {status: http.StatusServiceUnavailable, refused: RefusedLost},
	leasehold.ErrUnavailable:   {status: http.StatusServiceUnavailable, again: true},
	leasehold.ErrInvalid:       {status: http.StatusBadRequest},
	leasehold.ErrNotFound:      {status: http.StatusNotFound},
	leasehold.ErrExists:        {status: http.StatusConflict},
	leasehold.ErrStale:         {status: http.StatusPreconditionFailed},
	leasehold.ErrLimit:         {status: http.StatusServiceUnavailable},
}

// An explanation is the body of an error response.
type explanation struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

func explain(w http.ResponseWriter, status int, kind leasehold.Kind, message string) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(explanation{kindName(kind), message}) // fails only if the caller has disconnected
}

// kindName returns the stable name of a kind, for programs.
func kindName(k leasehold.Kind) string { return cmp.Or(kindNames[k], "internal") }

var kindNames = map[leasehold.Kind]string{
	leasehold.ErrInvalid:       "invalid",
	leasehold.ErrNotOwner:      "not-owner",
	leasehold.ErrNoOwner:       "no-owner",
	leasehold.ErrNotFound:      "not-found",
	leasehold.ErrExists:        "exists",
	leasehold.ErrStale:         "stale",
	leasehold.ErrUnavailable:   "unavailable",
	leasehold.ErrIndeterminate: "indeterminate",
	leasehold.ErrLimit:         "limit",
	leasehold.ErrClosed:        "closed",
	leasehold.ErrSuspended:     "suspended",
}

// maxNameBytes bounds the names in rejections. They are for people; programs use the key.
const maxNameBytes = 64

// A refusedKey is an error that has the requested key, as those of package leasemap do.
type refusedKey interface {
	RefusedKey() (name string, key leasehold.Key)
}

// setRefusedKey sets the headers with the key that the server derived from the request.
func setRefusedKey(h http.Header, name string, key leasehold.Key) {
	h.Set(HeaderKey, key.String())
	h.Del(HeaderName)
	if name != "" && len(name) <= maxNameBytes {
		h.Set(HeaderName, url.QueryEscape(name))
	}
}

func setRefusedKeyOf(h http.Header, err error) {
	if about := refusedKey(nil); errors.As(err, &about) {
		name, key := about.RefusedKey()
		setRefusedKey(h, name, key)
	}
}

// An otherKey is the error of a request whose server derives another key than the one by
// which it was routed. It is not retried: every server would reject it.
type otherKey struct{ text string }

func (o *otherKey) Error() string { return o.text }

// keyMismatch compares the key of a rejection with the one by which the request was routed.
// It returns nil if they are equal, if the rejection has no key, as from older servers, or if
// the response is not a rejection.
func (c *call) keyMismatch(answer *http.Response) error {
	switch reason := answer.Header.Get(HeaderRefused); {
	case reason == RefusedNotOwner && answer.StatusCode == http.StatusMisdirectedRequest:
	case reason == RefusedOtherKey && answer.StatusCode == http.StatusBadRequest:
	default:
		return nil
	}
	key, err := leasehold.ParseKey(answer.Header.Get(HeaderKey))
	if err != nil || key == c.key {
		return nil
	}
	source := c.transport.cfg.Key
	reserved, _ := source.Name(c.request) // it has one, or there would be no key
	theirs, err := url.QueryUnescape(answer.Header.Get(HeaderName))
	if err != nil {
		theirs = ""
	}
	return leasehold.Errorf("send", leasehold.ErrInvalid, clip(source.String()), "%w", &otherKey{fmt.Sprintf(
		"caller and server use different key sources, and the request was not executed: it was routed by %s, but the server derives %s; configure the same source for both",
		describeKey(reserved, c.key), describeKey(theirs, key))})
}

func describeKey(name string, key leasehold.Key) string {
	if name == "" || len(name) > maxNameBytes {
		return "key " + key.String()
	}
	return fmt.Sprintf("%q (key %v)", name, key)
}
