package jsonhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

// Key extracts the name of a request: the second segment of its path.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// A Mux routes the requests of a server.
type Mux struct {
	mux   *http.ServeMux
	owner *owner.Owner
}

// NewMux returns a mux with one route, GET /readyz, for readiness probes.
func NewMux(o *owner.Owner) *Mux {
	m := &Mux{http.NewServeMux(), o}
	if o != nil {
		m.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeReadiness(w, o.Status()) })
	}
	return m
}

type readiness struct {
	State       string    `json:"state"`
	Leases      int       `json:"leases"`
	LastContact time.Time `json:"last_contact"`
}

// writeReadiness responds with 503 unless the server has joined, so that load balancers send it
// no requests.
func writeReadiness(w http.ResponseWriter, s owner.Status) {
	w.Header().Set("Content-Type", "application/json")
	if s.State != owner.StateJoined {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = encode(w, readiness{s.State.String(), s.Held + s.Suspended, s.LastContact}) // fails only if the caller has closed the connection
}

// A Request is a request with a validated name.
type Request struct {
	*http.Request
	Name string
}

// Serve adds a route, whose pattern has the name as {name}. An error of the function becomes the
// response. A request for a name that is being transferred to this server waits for the transfer.
func (m *Mux) Serve(pattern string, serve func(w http.ResponseWriter, r *Request) error) {
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		err := ValidName(r.Method, "the subject of a request", name)
		if err == nil {
			if m.owner != nil {
				_ = m.owner.Await(r.Context(), leasehold.KeyOf(name))
			}
			err = serve(w, &Request{r, name})
		}
		if err != nil {
			Fail(w, err)
		}
	})
}

// Handle is Serve for a function that returns the response, nil for an empty one.
func (m *Mux) Handle(pattern string, answer func(r *Request) (any, error)) {
	m.Serve(pattern, func(w http.ResponseWriter, r *Request) error {
		body, err := answer(r)
		if err == nil {
			Write(w, body)
		}
		return err
	})
}

// Write responds with JSON, or with 204 if body is nil.
func Write(w http.ResponseWriter, body any) {
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = encode(w, body) // fails only if the caller has closed the connection
}

// ServeHTTP routes a request. Requests without a route have a JSON error.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := m.mux.Handler(r); pattern == "" {
		w = &strayWriter{ResponseWriter: w, request: r}
	}
	m.mux.ServeHTTP(w, r)
}

// A strayWriter replaces the plain-text errors of [http.ServeMux].
type strayWriter struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

func (w *strayWriter) WriteHeader(status int) {
	method, path := w.request.Method, w.request.URL.Path
	w.refused = true
	switch status {
	case http.StatusNotFound:
		Fail(w.ResponseWriter, leasehold.Errorf(method, leasehold.ErrNotFound, path, "there is no such path"))
	case http.StatusMethodNotAllowed:
		Fail(w.ResponseWriter, WithStatus(status, leasehold.Errorf(method, leasehold.ErrInvalid, path, "unsupported method: want one of %s", w.Header().Get("Allow"))))
	default: // a redirect
		w.refused = false
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *strayWriter) Write(text []byte) (int, error) {
	if w.refused {
		return len(text), nil
	}
	return w.ResponseWriter.Write(text)
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
	shown := name
	if len(shown) > 40 {
		shown = shown[:40] + "..."
	}
	return leasehold.Errorf(op, leasehold.ErrInvalid, shown, "%s has a name of up to %d bytes of UTF-8", what, MaxName)
}

// Read returns the body of a request. A body longer than most bytes fails with 413.
func (r *Request) Read(most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, TooLarge(r.Name, "the request has more than %d bytes", most)
	}
	if err != nil {
		return nil, leasehold.Errorf("read request", leasehold.ErrInvalid, r.Name, "%w", err)
	}
	return body, nil
}

// Body is for [Mux.Handle]: it reads a body of up to most bytes, and decodes it for a function.
// Want describes the expected body in errors.
func Body[In any](most int64, want string, answer func(r *Request, in In) (any, error)) func(*Request) (any, error) {
	return func(r *Request) (any, error) {
		data, err := r.Read(most)
		if err != nil {
			return nil, err
		}
		var in In
		if err := Decode(data, &in); err != nil {
			return nil, leasehold.Errorf("read request", leasehold.ErrInvalid, r.Name, "want %s as JSON: %w", want, err)
		}
		return answer(r, in)
	}
}

// Decode decodes exactly one JSON value. Unknown fields are errors, so that misspelled ones are
// detected.
func Decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("this is a JSON %s", wrong.Value) // the Go type means nothing to callers
		}
		return fmt.Errorf("%s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the body is empty")
	case err != nil:
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the JSON")
	}
	return nil
}
