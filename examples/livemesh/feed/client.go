package feed

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how other services use feeds. Readers need none: a feed has an address.
type Client struct {
	// HTTP finds the server of a user: by a [leasehttp.Transport] with [Key], or behind a
	// gateway.
	HTTP *http.Client
	// URL is what paths are appended to: "http://feeds".
	URL string
}

// Add adds the items of a feed, which is RSS, Atom or JSON Feed. It may be repeated.
func (c *Client) Add(ctx context.Context, user string, document []byte) (Receipt, error) {
	return c.post(ctx, jsonhttp.Path(c.URL, "feeds", user, "items"), "application/octet-stream", document)
}

// Report adds an event. One that may be repeated has an ID.
func (c *Client) Report(ctx context.Context, user string, e Event) (Receipt, error) {
	if e.ID == "" {
		e.ID = rand.Text()
	}
	data, err := json.Marshal(e)
	if err != nil {
		return Receipt{}, leasehold.Errorf("report event", leasehold.Invalid, user, "%w", err)
	}
	return c.post(ctx, jsonhttp.Path(c.URL, "feeds", user, "events"), "application/json", data)
}

// post posts what does no harm if it arrives twice, and says so: then it is sent again if a
// server does not answer.
func (c *Client) post(ctx context.Context, url, media string, body []byte) (receipt Receipt, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Receipt{}, leasehold.Errorf("post", leasehold.Invalid, url, "%w", err)
	}
	r.Header.Set("Content-Type", media)
	r.Header.Set("Idempotency-Key", rand.Text())
	err = jsonhttp.Send(c.HTTP, r, &receipt)
	return receipt, err
}

// Get returns the feed of a user, which has no items if there is none.
func (c *Client) Get(ctx context.Context, user string) (Document, error) {
	var d Document
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodGet, jsonhttp.Path(c.URL, "feeds", user)+"?format=json", nil, &d)
	return d, err
}

// Delete removes the feed of a user. Another server may still have it.
func (c *Client) Delete(ctx context.Context, user string) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodDelete, jsonhttp.Path(c.URL, "feeds", user), nil, nil)
}
