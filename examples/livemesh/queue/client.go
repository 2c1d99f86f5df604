package queue

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Enqueue adds a message. It fails with leasehold.ErrLimit if the queue is full. With mark it
// succeeds, and leaves a mark for the missed message.
func (c *Client) Enqueue(ctx context.Context, name string, body any, mark bool) (Receipt, error) {
	path := jsonhttp.Path("queues", name, "messages")
	if mark {
		path += "?overflow=mark"
	}
	return jsonhttp.Call[Receipt](ctx, c.Client, http.MethodPost, path, body)
}

// Receive returns the messages after a place, and waits for them. It acknowledges all messages up
// to the place.
func (c *Client) Receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	query := fmt.Sprintf("?wait=%v&epoch=%s&after=%d", wait, url.QueryEscape(at.Epoch), at.Have)
	return jsonhttp.Call[Batch](ctx, c.Client, http.MethodGet, jsonhttp.Path("queues", name, "messages")+query, nil)
}

// SetInterests replaces the names of other services that a device depends on.
func (c *Client) SetInterests(ctx context.Context, name string, interests []Interest) error {
	return c.Do(ctx, http.MethodPut, jsonhttp.Path("queues", name, "interests"), interests)
}
