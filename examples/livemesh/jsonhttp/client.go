package jsonhttp

import (
	"bytes"
	"cmp"
	"context"
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
}

// NewClient returns a client that finds the servers of a namespace with its lookup. Base
// may be nil.
func NewClient(l *lookup.Lookup, namespace leasehold.Namespace, base http.RoundTripper, timeout time.Duration) (Client, error) {
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: Key(), Base: base})
	return Client{HTTP: &http.Client{Transport: transport, Timeout: timeout}, URL: "http://" + string(namespace)}, err
}

// Call sends in as JSON, or unchanged if it is a []byte, and decodes the response. In may be nil.
//
// After an error of kind [leasehold.ErrIndeterminate] the request may have been executed. After
// errors of other kinds it was not.
func Call[Out any](ctx context.Context, c Client, method, path string, in any) (out Out, err error) {
	subject := c.URL + path
	data, err := c.exchange(ctx, method, subject, in)
	if err == nil && len(data) > 0 {
		if err = json.Unmarshal(data, &out); err != nil {
			err = leasehold.Errorf(method, leasehold.ErrInternal, subject, "unexpected response: %w", err)
		}
	}
	return out, err
}

// Do is Call without a response.
func (c Client) Do(ctx context.Context, method, path string, in any) error {
	_, err := Call[json.RawMessage](ctx, c, method, path, in)
	return err
}

func (c Client) exchange(ctx context.Context, method, url string, in any) ([]byte, error) {
	r, err := newRequest(ctx, method, url, in)
	if err != nil {
		return nil, leasehold.Errorf(method, leasehold.ErrInvalid, url, "%w", err)
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return nil, unanswered(method, url, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, leasehold.Errorf(method, leasehold.ErrIndeterminate, url, "%w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return nil, failure(method, url, answer.Status, data)
	}
	return data, nil
}

func newRequest(ctx context.Context, method, url string, in any) (*http.Request, error) {
	var body bytes.Buffer
	if raw, ok := in.([]byte); ok {
		body.Write(raw)
	} else if in != nil {
		if err := encode(&body, in); err != nil {
			return nil, err
		}
		body.Truncate(body.Len() - 1) // without the line end
	}
	r, err := http.NewRequestWithContext(ctx, method, url, &body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// unanswered is the error of a request without a response. The error of package http repeats
// method and URL.
func unanswered(method, subject string, err error) error {
	kind := leasehold.KindOf(err)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return leasehold.Errorf(method, cmp.Or(kind, leasehold.ErrIndeterminate), subject, "%w", err)
}

// executedNot has the kinds of errors after which a request was not executed, by their names in
// responses of package leasehttp.
var executedNot = map[string]leasehold.Kind{
	"invalid":   leasehold.ErrInvalid,
	"not-found": leasehold.ErrNotFound,
	"exists":    leasehold.ErrExists,
	"stale":     leasehold.ErrStale,
	"not-owner": leasehold.ErrNotOwner,
	"limit":     leasehold.ErrLimit,
}

// failure is the error in a response.
func failure(method, url, status string, body []byte) error {
	var e struct{ Kind, Message string }
	if json.Unmarshal(body, &e) != nil {
		e.Message = strings.TrimSpace(string(body)) // of another program
	}
	return leasehold.Errorf(method, cmp.Or(executedNot[e.Kind], leasehold.ErrIndeterminate), url, "%s: %s", status, e.Message)
}

// Path joins segments to a path, with escapes.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ".", "%2E"))
	}
	return b.String()
}
