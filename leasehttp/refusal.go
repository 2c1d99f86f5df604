package leasehttp

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// What gateways and servers say to each other in headers. See the section "On
// the wire" of the package's documentation.
const (
	headerPrefix = "Leasehold-"

	// HeaderKey has the key by which a request was routed, in the form of
	// [leasehold.Key.String].
	HeaderKey = "Leasehold-Key"
	// HeaderRefused is in an answer that comes from a server's lease and not from
	// its application. Its value is [RefusedNotOwner] or [RefusedLost].
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
)

// ours reports whether a header, in its canonical form, is one of ours.
func ours(name string) bool { return strings.HasPrefix(name, headerPrefix) }

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
		said == RefusedLost && r.StatusCode == http.StatusServiceUnavailable:
		return said
	}
	return ""
}

// Refuse answers a request for a key that this server does not own, so that
// whoever routed it looks again and sends it to another server. [Middleware] does
// it by itself; it is for applications that check leases on their own. Nothing
// may have been done about the request: what was begun could be done twice.
func Refuse(w http.ResponseWriter) {
	w.Header().Set(HeaderRefused, RefusedNotOwner)
	explain(w, http.StatusMisdirectedRequest, leasehold.NotOwner,
		"this server does not own the key of the request, and has done nothing: look the key up again")
}

// refuseLost answers a request whose lease ended under it.
func refuseLost(w http.ResponseWriter) {
	w.Header().Set(HeaderRefused, RefusedLost)
	explain(w, http.StatusServiceUnavailable, leasehold.NotOwner,
		"this server lost the key of the request while it worked on it, and what it did may be gone: repeat the request if it does no harm twice")
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
	case leasehold.Unavailable:
		return "unavailable"
	case leasehold.Limit:
		return "limit"
	case leasehold.Closed:
		return "closed"
	default:
		return "internal"
	}
}
