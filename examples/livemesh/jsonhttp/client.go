package jsonhttp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// maxAnswer bounds the size of a response, in bytes.
const maxAnswer = 8 << 20

// A Client sends requests to a service. Each service wraps it in a client with a method for
// each operation. It is safe for concurrent use.
type Client struct {
	// HTTP finds the server of a name: by a [leasehttp.Transport] with [Key], or behind a
	// frontend.
	HTTP *http.Client
	// URL is the prefix of all paths: "http://queues".
	URL string
	// Repeatable marks a POST as idempotent, so that it is retried if a server does not
	// respond.
	Repeatable bool
}

// NewClient returns a client that finds the servers of a namespace with its lookup. Base
// may be nil.
func NewClient(l *lookup.Lookup, namespace leasehold.Namespace, base http.RoundTripper, timeout time.Duration) (Client, error) {
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: Key(), Base: base})
	return Client{HTTP: &http.Client{Transport: transport, Timeout: timeout}, URL: "http://" + string(namespace)}, err
}

// Call sends in, and returns the response: see [Client.Do].
func Call[Out any](ctx context.Context, c Client, method, path string, in any) (out Out, err error) {
	err = c.Do(ctx, method, path, in, &out)
	return out, err
}

// Do sends in as JSON, or unchanged if it is a []byte, and decodes the response into out. Both
// may be nil.
//
// After an error of kind [leasehold.ErrIndeterminate] the request may have been executed. After
// errors of other kinds it was not.
func (c Client) Do(ctx context.Context, method, path string, in, out any) error {
	subject := c.URL + path
	body, err := encodeBody(in)
	if err != nil {
		return leasehold.Errorf(method, leasehold.ErrInvalid, subject, "%w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, subject, bytes.NewReader(body))
	if err != nil {
		return leasehold.Errorf(method, leasehold.ErrInvalid, subject, "%w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.Repeatable {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		kind := leasehold.KindOf(err)
		if kind == leasehold.Other {
			kind = leasehold.ErrIndeterminate
		}
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // the other fields are the method and the URL
		}
		return leasehold.Errorf(method, kind, subject, "%w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return leasehold.Errorf(method, leasehold.ErrIndeterminate, subject, "%w", err)
	}
	if kind, failed := kindOf(answer.StatusCode); failed {
		return leasehold.Errorf(method, kind, subject, "%s: %s", answer.Status, explanationOf(data))
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return leasehold.Errorf(method, leasehold.ErrInternal, subject, "unexpected response: %w", err)
	}
	return nil
}

func encodeBody(in any) ([]byte, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case []byte:
		return in, nil
	}
	var b bytes.Buffer
	err := encode(&b, in)
	return bytes.TrimSpace(b.Bytes()), err
}

// encode writes JSON without HTML escapes, which could make a message longer than the receiver
// accepts.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Path joins segments to a path, with escapes.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ".", "%2E"))
	}
	return b.String()
}

// Query encodes parameters, given as names and values in turn; empty values are omitted.
func Query(parameters ...string) string {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			query.Set(parameters[i], parameters[i+1])
		}
	}
	return "?" + query.Encode()
}

// A failure is an error with an HTTP status.
type failure struct {
	status int
	error
}

func (f *failure) Unwrap() error { return f.error }

// WithStatus returns an error with an HTTP status, which must be one that [Client.Do] maps to
// a kind.
func WithStatus(status int, err error) error { return &failure{status, err} }

// TooLarge returns an error with status 413.
func TooLarge(name, format string, args ...any) error {
	return WithStatus(http.StatusRequestEntityTooLarge, leasehold.Errorf("accept", leasehold.ErrInvalid, name, format, args...))
}

// Fail responds with an error.
func Fail(w http.ResponseWriter, err error) {
	if f := (*failure)(nil); errors.As(err, &f) {
		w = statusWriter{w, f.status}
	} else if errors.Is(err, leasehold.ErrLimit) {
		w = statusWriter{w, http.StatusTooManyRequests} // nothing was done
	}
	leasehttp.WriteError(w, err)
}

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

// explanationOf returns the message in a response, or its whole body.
func explanationOf(body []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		return e.Message
	}
	return strings.TrimSpace(string(body))
}
