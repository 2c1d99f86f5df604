package jsonhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
)

// A failure is an error that has a status of its own.
type failure struct {
	status int
	error
}

func (f *failure) Unwrap() error { return f.error }

// WithStatus returns an error that is answered with this status, which must be one of those
// in [Client.Do].
func WithStatus(status int, err error) error { return &failure{status, err} }

// TooLarge returns an error that is answered with 413.
func TooLarge(name, format string, args ...any) error {
	return WithStatus(http.StatusRequestEntityTooLarge, leasehold.Errorf("accept", leasehold.ErrInvalid, name, format, args...))
}

// Fail answers a request that failed.
func Fail(w http.ResponseWriter, err error) {
	if f := (*failure)(nil); errors.As(err, &f) {
		w = statusWriter{w, f.status}
	} else if errors.Is(err, leasehold.ErrLimit) {
		w = statusWriter{w, http.StatusTooManyRequests} // nothing was done
	}
	leasehttp.WriteError(w, err)
}

// A statusWriter replaces the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w statusWriter) WriteHeader(int) { w.ResponseWriter.WriteHeader(w.status) }

// kindOf is the inverse of Fail.
func kindOf(status int) (kind leasehold.Kind, failed bool) {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return leasehold.ErrInvalid, true
	case http.StatusNotFound, http.StatusGone:
		return leasehold.ErrNotFound, true
	case http.StatusConflict:
		return leasehold.ErrExists, true
	case http.StatusPreconditionFailed:
		return leasehold.ErrStale, true
	case http.StatusMisdirectedRequest:
		return leasehold.ErrNotOwner, true
	case http.StatusTooManyRequests:
		return leasehold.ErrLimit, true
	}
	return leasehold.ErrIndeterminate, status >= http.StatusMultipleChoices
}

// explanationOf is the message in an answer, or all of its body.
func explanationOf(body []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		return e.Message
	}
	return strings.TrimSpace(string(body))
}
