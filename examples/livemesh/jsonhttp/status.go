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

// WithStatus returns an error that is answered with this status. It must be one that
// [Call] knows.
func WithStatus(status int, err error) error { return &failure{status, err} }

// An explanation is the body of an answer to a request that failed. Package leasehttp has
// the same.
type explanation struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Fail answers a request that failed.
func Fail(w http.ResponseWriter, err error) {
	status := 0
	if f := (*failure)(nil); errors.As(err, &f) {
		status = f.status
	} else if errors.Is(err, leasehold.Limit) {
		status = http.StatusTooManyRequests // nothing was done
	}
	if status == 0 {
		leasehttp.Error(w, err)
		return
	}
	leasehttp.Error(statusWriter{w, status}, err) // the body is the same, whatever the status
}

// A statusWriter answers with a status of its own.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w statusWriter) WriteHeader(int) { w.ResponseWriter.WriteHeader(w.status) }

// kindOf is what a status means.
func kindOf(status int) (kind leasehold.Kind, failed bool) {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return leasehold.Invalid, true
	case http.StatusNotFound, http.StatusGone:
		return leasehold.NotFound, true
	case http.StatusConflict:
		return leasehold.Exists, true
	case http.StatusPreconditionFailed:
		return leasehold.Stale, true
	case http.StatusMisdirectedRequest:
		return leasehold.NotOwner, true
	case http.StatusTooManyRequests:
		return leasehold.Limit, true
	}
	return leasehold.Unavailable, status >= http.StatusMultipleChoices
}

// explanationOf is what an answer says, whoever gave it.
func explanationOf(body []byte) string {
	var e explanation
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		return e.Message
	}
	return strings.TrimSpace(string(body))
}
