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

// Key is where in a request the name is that it is about.
func Key() leasehttp.Source { return leasehttp.PathSegment(2) }

// A Mux routes the requests that a server of a service gets.
type Mux struct {
	mux   *http.ServeMux
	owner *owner.Owner
}

// NewMux returns a mux that has only the route GET /readyz, for readiness probes.
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

// writeReadiness answers 503 unless the server has joined: orchestrators and load balancers
// then send it nothing new.
func writeReadiness(w http.ResponseWriter, s owner.Status) {
	w.Header().Set("Content-Type", "application/json")
	if s.State != owner.StateJoined {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = encode(w, readiness{s.State.String(), s.Held + s.Suspended, s.LastContact}) // it fails only if the caller has gone
}

// A Request is about a name, which has been validated.
type Request struct {
	*http.Request
	Name string
}

// Serve adds a route, whose pattern has the name as {name}. An error that the function returns
// is the answer. A request for a name that is being moved to this server waits for it.
func (m *Mux) Serve(pattern string, serve func(w http.ResponseWriter, r *Request) error) {
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		err := ValidName(r.Method, "what a request is about", name)
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

// Handle is Serve for a function that returns the answer, nil for an empty one.
func (m *Mux) Handle(pattern string, answer func(r *Request) (any, error)) {
	m.Serve(pattern, func(w http.ResponseWriter, r *Request) error {
		body, err := answer(r)
		if err == nil {
			Write(w, body)
		}
		return err
	})
}

// Write answers with JSON, or with 204 if there is nothing to write.
func Write(w http.ResponseWriter, body any) {
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = encode(w, body) // it fails only if the caller has gone
}

// ServeHTTP answers what has no route with an object, too.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := m.mux.Handler(r); pattern == "" {
		w = &strayWriter{ResponseWriter: w, request: r}
	}
	m.mux.ServeHTTP(w, r)
}

// A strayWriter replaces the plain text with which a [http.ServeMux] refuses a request.
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
		Fail(w.ResponseWriter, WithStatus(status, leasehold.Errorf(method, leasehold.ErrInvalid, path, "there is no such method here: want one of %s", w.Header().Get("Allow"))))
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

// MaxName is how many bytes a name may have: of a document, section, topic, queue or user.
const MaxName = 256

// ValidName refuses what is no name: messages and logs repeat it, and JSON has only UTF-8.
// What it is the name of, "a queue" for instance, is for the error.
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

// Read returns the body of a request. One that is longer than most bytes is refused with 413.
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

// Body is for [Mux.Handle]: it reads a request of up to most bytes, and decodes it for a
// function. Want says in errors what it should be.
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

// Decode reads the one JSON value that data is. Unknown fields are refused: one that is
// misspelled would have no effect.
func Decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("this is a JSON %s", wrong.Value) // the Go type is nothing to callers
		}
		return fmt.Errorf("%s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("there is nothing")
	case err != nil:
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something comes after the JSON")
	}
	return nil
}
