package jsonhttp

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/leasehold-dev/leasehold"
)

// Answer makes a handler of a function that returns what is to be answered as JSON, nil for
// nothing, or why it cannot be.
func Answer(answer func(w http.ResponseWriter, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := answer(w, r)
		switch {
		case err != nil:
			Fail(w, err)
		case body == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			write(w, body)
		}
	}
}

// write writes what fails only if the caller has gone.
func write(w io.Writer, body any) { _ = encode(w, body) }

// encode writes JSON, and leaves what is JSON already as long as it is: escaped for HTML it
// might be more than the other side takes.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Read returns the body of a request. One that is longer than most bytes is refused with
// 413.
func Read(r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, TooLarge(r.PathValue("name"), "the request has more than %d bytes", most)
	}
	if err != nil {
		return nil, leasehold.Errorf("read request", leasehold.Invalid, r.PathValue("name"), "%w", err)
	}
	return body, nil
}

// TooLarge is the error that says that something is.
func TooLarge(name, format string, args ...any) error {
	return WithStatus(http.StatusRequestEntityTooLarge, leasehold.Errorf("accept", leasehold.Invalid, name, format, args...))
}
