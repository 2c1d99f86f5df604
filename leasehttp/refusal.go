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

// What gateways and servers say to each other in headers. See the section "On
// the wire" of the package's documentation.
const (
	headerPrefix = "Leasehold-"

	// HeaderKey has the key by which a request was routed, in the form of
	// [leasehold.Key.String]; in a refusal, the key that was refused.
	HeaderKey = "Leasehold-Key"
	// HeaderName has the name of the key that was refused, escaped as in a query.
	// It is left out if the name is not known, or long.
	HeaderName = "Leasehold-Name"
	// HeaderRefused is in an answer that comes from a server's lease and not from
	// its application. Its value is [RefusedNotOwner], [RefusedSuspended],
	// [RefusedLost] or [RefusedOtherKey].
	HeaderRefused = "Leasehold-Refused"
	// HeaderError is in an answer that comes from a gateway and not from a server,
	// and has the kind of error that the body explains.
	HeaderError = "Leasehold-Error"

	// RefusedNotOwner, with status 421, says that the server does not own the key
	// and has done nothing: the request may be sent to another.
	RefusedNotOwner = "not-owner"
	// RefusedLost, with status 503, says that the server lost the key while it
	// worked on the request. What it did may count or not: only a request that
	// does no harm if it is carried out twice may be sent again.
	RefusedLost = "lost"
	// RefusedOtherKey, with status 400, says that the request was routed by another
	// key than the server finds in it, and that nothing was done: caller and server
	// take it from different places.
	RefusedOtherKey = "other-key"
	// RefusedSuspended, with status 503 and Retry-After, says that the server's lease on
	// the key is suspended, because no manager has answered in time, and that it has done
	// nothing: any request may be sent again, to the same server.
	RefusedSuspended = "suspended"
)

// ours reports whether a header is one of ours, to any program: there are some that
// make no difference between "-" and "_".
func ours(name string) bool {
	const n = len(headerPrefix) - 1
	return len(name) > n && (name[n] == '-' || name[n] == '_') && strings.EqualFold(name[:n], headerPrefix[:n])
}

func strip(h http.Header) {
	for name := range h {
		if ours(name) {
			delete(h, name)
		}
	}
}

// refused returns how a server has refused a request, and "" if it has not. An
// application's own 421 or 503 has no header of ours.
func refused(r *http.Response) string {
	switch said := r.Header.Get(HeaderRefused); {
	case said == RefusedNotOwner && r.StatusCode == http.StatusMisdirectedRequest,
		(said == RefusedLost || said == RefusedSuspended) && r.StatusCode == http.StatusServiceUnavailable:
		return said
	}
	return ""
}

// WriteError answers a request with an error, such as those of package leasemap or of an
// application that checks leases itself, and returns true. If err is nil it writes nothing
// and returns false.
//
//   - [leasehold.ErrNotOwner] is 421, so that the gateway or [Transport] looks the key up again
//     and sends the request to another server. Return it only if nothing was done: the
//     request is executed again. [Middleware] answers so by itself. If errors.As
//     finds an error with the method RefusedKey() (name string, key leasehold.Key),
//     as in those of package leasemap, the answer has that key, which shows if the request
//     was routed by another one.
//   - [leasehold.ErrSuspended] is 503 with Retry-After and [RefusedSuspended], so that the request
//     is sent again after a wait. Return it only if nothing was done, as above.
//   - [leasehold.ErrIndeterminate] is 503 with [RefusedLost]: the request may have been executed.
//     Only idempotent requests are sent again.
//   - [leasehold.ErrUnavailable] is 503 with Retry-After.
//   - A body that [http.MaxBytesReader] has found too long is 413.
//   - [leasehold.ErrInvalid] is 400, [leasehold.ErrNotFound] 404, [leasehold.ErrExists] 409,
//     [leasehold.ErrStale] 412, [leasehold.ErrLimit] 503, and everything else 500.
//
// The caller sees the text of the error if its kind is one of those named here. In a handler:
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
	answer, ok := answers[kind]
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
		tellRefused(w.Header(), err)
	}
	explain(w, answer.status, kind, err.Error())
}

var answers = map[leasehold.Kind]struct {
	status  int
	refused string // of HeaderRefused
	again   bool   // it may be worth while to send the request again soon
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

// An explanation is the body of an answer that is ours.
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
	_ = json.NewEncoder(w).Encode(explanation{kindName(kind), message}) // a caller that has gone needs no answer
}

// kindName is how a kind is written for programs. It never changes.
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

// maxName is how long a name may be that is said to whoever routed a request. It is for
// people: the key says all that programs need.
const maxName = 64

// A refusedKey is an error that says what was asked for, as those of package leasemap do.
type refusedKey interface {
	RefusedKey() (name string, key leasehold.Key)
}

// tellKey says in the answer of a server what key it takes the request to be about.
func tellKey(h http.Header, name string, key leasehold.Key) {
	h.Set(HeaderKey, key.String())
	h.Del(HeaderName)
	if name != "" && len(name) <= maxName {
		h.Set(HeaderName, url.QueryEscape(name))
	}
}

func tellRefused(h http.Header, err error) {
	if about := refusedKey(nil); errors.As(err, &about) {
		name, key := about.RefusedKey()
		tellKey(h, name, key)
	}
}

// An otherKey is what a request failed with whose server takes it to be about another key
// than the one that it was routed by. No other server would do better.
type otherKey struct{ text string }

func (o *otherKey) Error() string { return o.text }

// misread compares the key that a server has refused with the one that the request was
// routed by. It returns nil if they are the same, if the server does not say which it has
// refused, as older ones do not, or if it has refused nothing.
func (c *call) misread(answer *http.Response) error {
	switch said := answer.Header.Get(HeaderRefused); {
	case said == RefusedNotOwner && answer.StatusCode == http.StatusMisdirectedRequest:
	case said == RefusedOtherKey && answer.StatusCode == http.StatusBadRequest:
	default:
		return nil
	}
	key, err := leasehold.ParseKey(answer.Header.Get(HeaderKey))
	if told := err == nil; !told || key == c.key {
		return nil
	}
	source := c.transport.cfg.Key
	ours, _ := source.Name(c.request) // it has one, or there would be no key
	theirs, err := url.QueryUnescape(answer.Header.Get(HeaderName))
	if err != nil {
		theirs = ""
	}
	return leasehold.Errorf("send", leasehold.ErrInvalid, clip(source.String()), "%w", &otherKey{fmt.Sprintf(
		"caller and server take the key of the request from different places, and it was not carried out: it was routed by %s, and the server looks for %s; give both the same source of keys",
		described(ours, c.key), described(theirs, key))})
}

func described(name string, key leasehold.Key) string {
	if name == "" || len(name) > maxName {
		return "key " + key.String()
	}
	return fmt.Sprintf("%q (key %v)", name, key)
}
