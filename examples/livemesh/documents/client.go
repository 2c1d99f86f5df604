package documents

import (
	"context"
	"net/http"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Get returns a document. It fails with leasehold.ErrNotFound if there is none.
func (c *Client) Get(ctx context.Context, name string) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodGet, path(name), nil)
}

// Change changes sections of a document, all or none. It fails with leasehold.ErrStale if a
// section does not meet its condition.
func (c *Client) Change(ctx context.Context, name string, change Change) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodPatch, path(name), change)
}

// Refresh extends the TTL of a document. If it fails with leasehold.ErrNotFound, write the
// document again.
func (c *Client) Refresh(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodPost, path(name)+"/refresh", nil)
}

// Delete removes a document, if there is one.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.Do(ctx, http.MethodDelete, path(name), nil)
}

func path(name string) string { return jsonhttp.Path("documents", name) }
