package jsonhttp

import (
	"net/http"
	"time"

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

// A readiness is the answer to a readiness probe.
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
