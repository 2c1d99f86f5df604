package documents

import (
	"context"
	"net/http"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how others use documents.
type Client struct {
	// HTTP finds the server of a document: by a [leasehttp.Transport] with [Key], or
	// behind a gateway.
	HTTP *http.Client
	// URL is what paths are appended to: "http://documents".
	URL string
}

// Get returns a document. It fails with [leasehold.NotFound] if there is none.
func (c *Client) Get(ctx context.Context, name string) (Document, error) {
	var d Document
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodGet, c.url(name), nil, &d)
	return d, err
}

// Change changes sections of a document, all or none. It fails with [leasehold.Stale] if a
// section has another version than the change wants.
func (c *Client) Change(ctx context.Context, name string, change Change) (Document, error) {
	var d Document
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodPatch, c.url(name), change, &d)
	return d, err
}

// Refresh lets a document last for another TTL. If it fails with [leasehold.NotFound] it is
// to be written again.
func (c *Client) Refresh(ctx context.Context, name string) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodPost, c.url(name)+"/refresh", nil, nil)
}

// Delete removes a document, if there is one.
func (c *Client) Delete(ctx context.Context, name string) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodDelete, c.url(name), nil, nil)
}

func (c *Client) url(name string) string { return jsonhttp.Path(c.URL, "documents", name) }
