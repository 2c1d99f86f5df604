package leasehttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// strip removes all headers of ours.
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
// and returns false:
//
//		value, _, err := m.Get(name)
//		if leasehttp.WriteError(w, err) {
//			return
//		}
//
//	  - [leasehold.NotOwner] is 421, so that whoever routed the request looks again
//	    and sends it to another server. Nothing may have been done about it: what was
//	    begun could be done twice. [Middleware] answers so by itself. If errors.As
//	    finds an error with the method RefusedKey() (name string, key leasehold.Key),
//	    as in those of package leasemap, the answer says that, so that whoever routed
//	    by another key finds out.
//	  - [leasehold.Suspended] is 503 with Retry-After, so that whoever routed the request
//	    waits and sends it again. Nothing may have been done about it, as above.
//	  - [leasehold.Unavailable] is 503, and says that it may have been carried out.
//	    Only requests that do no harm twice are sent again.
//	  - A body that [http.MaxBytesReader] has found too long is 413.
//	  - [leasehold.Invalid] is 400, [leasehold.NotFound] 404, [leasehold.Exists] 409,
//	    [leasehold.Stale] 412, [leasehold.Limit] 503, and everything else 500.
//
// The caller sees the text of the error if its kind is one of those named here.
func WriteError(w http.ResponseWriter, err error) bool {
	if err != nil {
		writeError(w, err)
	}
	return err != nil
}

func writeError(w http.ResponseWriter, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		explain(w, http.StatusRequestEntityTooLarge, leasehold.Invalid, fmt.Sprintf("the request's body is longer than %d bytes", tooLong.Limit))
		return
	}
	kind := leasehold.KindOf(err)
	switch kind {
	case leasehold.NotOwner:
		w.Header().Set(HeaderRefused, RefusedNotOwner)
		tellRefused(w.Header(), err)
		explain(w, http.StatusMisdirectedRequest, kind, err.Error())
	case leasehold.Suspended:
		w.Header().Set(HeaderRefused, RefusedSuspended)
		w.Header().Set("Retry-After", "1")
		tellRefused(w.Header(), err)
		explain(w, http.StatusServiceUnavailable, kind, err.Error())
	case leasehold.Unavailable:
		w.Header().Set(HeaderRefused, RefusedLost)
		explain(w, http.StatusServiceUnavailable, kind, err.Error())
	case leasehold.Invalid:
		explain(w, http.StatusBadRequest, kind, err.Error())
	case leasehold.NotFound:
		explain(w, http.StatusNotFound, kind, err.Error())
	case leasehold.Exists:
		explain(w, http.StatusConflict, kind, err.Error())
	case leasehold.Stale:
		explain(w, http.StatusPreconditionFailed, kind, err.Error())
	case leasehold.Limit:
		explain(w, http.StatusServiceUnavailable, kind, err.Error())
	default:
		explain(w, http.StatusInternalServerError, leasehold.Internal, "the server failed")
	}
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
func kindName(k leasehold.Kind) string {
	switch k {
	case leasehold.Invalid:
		return "invalid"
	case leasehold.NotOwner:
		return "not-owner"
	case leasehold.NoOwner:
		return "no-owner"
	case leasehold.NotFound:
		return "not-found"
	case leasehold.Exists:
		return "exists"
	case leasehold.Stale:
		return "stale"
	case leasehold.Unavailable:
		return "unavailable"
	case leasehold.Limit:
		return "limit"
	case leasehold.Closed:
		return "closed"
	case leasehold.Suspended:
		return "suspended"
	default:
		return "internal"
	}
}
