package jsonhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// Call sends in, unless it is nil, and reads the answer into out, unless that is nil.
//
// An error of kind [leasehold.Unavailable] says that the request may have been carried
// out. Those of the other kinds say that it was not.
func Call(ctx context.Context, client *http.Client, method, url string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		var data bytes.Buffer
		if err := encode(&data, in); err != nil {
			return leasehold.Errorf(method, leasehold.Invalid, url, "%w", err)
		}
		body = bytes.NewReader(bytes.TrimSpace(data.Bytes()))
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return leasehold.Errorf(method, leasehold.Invalid, url, "%w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	return Send(client, r, out)
}

// Send is Call for a request that is made already: its body need not be JSON.
func Send(client *http.Client, r *http.Request, out any) error {
	method, url := r.Method, r.URL.String()
	answer, err := client.Do(r) //nolint:gosec // addresses are the lookup's
	if err != nil {
		kind := leasehold.KindOf(err)
		if kind == leasehold.Other {
			kind = leasehold.Unavailable
		}
		if said := (*neturl.Error)(nil); errors.As(err, &said) {
			err = said.Err // it would name the method and the URL once more
		}
		return leasehold.Errorf(method, kind, url, "%w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return leasehold.Errorf(method, leasehold.Unavailable, url, "%w", err)
	}
	if kind, failed := kindOf(answer.StatusCode); failed {
		return leasehold.Errorf(method, kind, url, "%s: %s", answer.Status, explanationOf(data))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return leasehold.Errorf(method, leasehold.Internal, url, "the answer is not what was expected: %w", err)
	}
	return nil
}

// Path joins what may have any characters in it.
func Path(base string, segments ...string) string {
	var b strings.Builder
	b.WriteString(base)
	for _, s := range segments {
		fmt.Fprintf(&b, "/%s", escape(s))
	}
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(neturl.PathEscape(s), ".", "%2E") }
