package jsonhttp

import (
	"net/http"

	"github.com/leasehold-dev/leasehold"
)

// Routes has a mux answer what it has no handler for as all other failures are answered:
// with an object that says what is wrong.
func Routes(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			w = &strayWriter{ResponseWriter: w, request: r}
		}
		mux.ServeHTTP(w, r)
	})
}

// A strayWriter replaces the plain text with which a mux refuses a request.
type strayWriter struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

func (w *strayWriter) WriteHeader(status int) {
	method, path := w.request.Method, w.request.URL.Path
	switch status {
	case http.StatusNotFound:
		w.refused = true
		Fail(w.ResponseWriter, leasehold.Errorf(method, leasehold.NotFound, path, "there is no such path"))
	case http.StatusMethodNotAllowed:
		w.refused = true
		Fail(w.ResponseWriter, WithStatus(status, leasehold.Errorf(method, leasehold.Invalid, path, "there is no such method here: want one of %s", w.Header().Get("Allow"))))
	default: // it is sent elsewhere
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *strayWriter) Write(text []byte) (int, error) {
	if w.refused {
		return len(text), nil
	}
	return w.ResponseWriter.Write(text)
}
