package jsonhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// Key extracts the name of a request: the second segment of its path.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// A Mux routes the requests of a server.
type Mux struct {
	http.ServeMux
	owner   *owner.Owner
	maxBody int64
}

// NewMux returns a mux without routes. A longer body than maxBody bytes fails with 413.
func NewMux(o *owner.Owner, maxBody int64) *Mux { return &Mux{owner: o, maxBody: maxBody} }

// A Request is a request with a validated name.
type Request struct {
	*http.Request
	Name string
}

// None is a request or a response without a body.
type None struct{}

// Handle adds a route, whose pattern has the name as {name}. The body is decoded from JSON, or
// unchanged for a []byte. The result or the error of the function becomes the response. A request
// for a name that is being transferred to this server waits for the transfer.
func Handle[In, Out any](m *Mux, pattern string, answer func(r *Request, in In) (Out, error)) {
	m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		out, err := serve(m, w, r, answer)
		if leasehttp.WriteError(w, err) {
			return
		}
		if any(out) == any(None{}) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = encode(w, out) // fails only if the caller has closed the connection
	})
}

func serve[In, Out any](m *Mux, w http.ResponseWriter, r *http.Request, answer func(*Request, In) (Out, error)) (out Out, err error) {
	name := r.PathValue("name")
	if err := ValidName(r.Method, "the subject of a request", name); err != nil {
		return out, err
	}
	var in In
	if err := read(http.MaxBytesReader(w, r.Body, m.maxBody), &in); err != nil {
		return out, leasehold.Errorf("read request", leasehold.ErrInvalid, name, "%w", err)
	}
	if m.owner != nil {
		_ = m.owner.Await(r.Context(), leasehold.KeyOf(name))
	}
	return answer(&Request{r, name}, in)
}

func read(body io.Reader, into any) error {
	if _, none := into.(*None); none {
		return nil
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = data
		return nil
	}
	return Decode(data, into)
}

// Decode decodes exactly one JSON value. Unknown fields are errors, so that misspelled ones are
// detected.
func Decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("want JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the JSON")
	}
	return nil
}

// encode writes JSON without HTML escapes, which could make a message longer than the receiver
// accepts.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// MaxName is the maximum length, in bytes, of a name of a document, section, topic, queue or
// user.
const MaxName = 256

// ValidName validates a name. Messages and logs contain names, and JSON requires UTF-8. What is
// the subject in the error, for example "a queue".
func ValidName(op, what, name string) error {
	if name != "" && len(name) <= MaxName && utf8.ValidString(name) {
		return nil
	}
	return leasehold.Errorf(op, leasehold.ErrInvalid, name[:min(len(name), MaxName)], "%s has a name of up to %d bytes of UTF-8", what, MaxName)
}
