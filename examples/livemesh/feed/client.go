package feed

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how other services use feeds. Readers need none: a feed has an address.
type Client struct{ jsonhttp.Client }

// Add adds the items of a feed, which is RSS, Atom or JSON Feed. It may be repeated.
func (c *Client) Add(ctx context.Context, user string, document []byte) (Receipt, error) {
	return c.post(ctx, jsonhttp.Path("feeds", user, "items"), document)
}

// Report adds an event. One that may be repeated has an ID.
func (c *Client) Report(ctx context.Context, user string, e Event) (Receipt, error) {
	e.ID = cmp.Or(e.ID, rand.Text())
	return c.post(ctx, jsonhttp.Path("feeds", user, "events"), e)
}

// post posts what does no harm if it arrives twice.
func (c *Client) post(ctx context.Context, path string, in any) (Receipt, error) {
	repeatable := c.Client
	repeatable.Repeatable = true
	return jsonhttp.Call[Receipt](ctx, repeatable, http.MethodPost, path, in)
}

// Get returns the feed of a user, which has no items if there is none.
func (c *Client) Get(ctx context.Context, user string) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodGet, jsonhttp.Path("feeds", user)+"?format=json", nil)
}

// Delete removes the feed of a user. Another server may still have it.
func (c *Client) Delete(ctx context.Context, user string) error {
	return c.Do(ctx, http.MethodDelete, jsonhttp.Path("feeds", user), nil, nil)
}
