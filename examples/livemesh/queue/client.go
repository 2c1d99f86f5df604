package queue

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how other services, and devices, use queues.
type Client struct{ jsonhttp.Client }

// Enqueue adds a message. An error of kind [leasehold.ErrLimit] says that there is no room; with
// mark there always is, and the device learns if it missed something.
func (c *Client) Enqueue(ctx context.Context, name string, body any, mark bool) (Receipt, error) {
	path := jsonhttp.Path("queues", name, "messages")
	if mark {
		path += jsonhttp.Query("overflow", "mark")
	}
	return jsonhttp.Call[Receipt](ctx, c.Client, http.MethodPost, path, body)
}

// Receive returns what comes after a place, and waits for it. It says that the device has
// all up to the place.
func (c *Client) Receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	after := ""
	if at.Epoch != "" {
		after = strconv.FormatUint(at.Have, 10)
	}
	path := jsonhttp.Path("queues", name, "messages") + jsonhttp.Query("wait", wait.String(), "epoch", at.Epoch, "after", after)
	return jsonhttp.Call[Batch](ctx, c.Client, http.MethodGet, path, nil)
}

// SetInterests says on which names of other services a device depends.
func (c *Client) SetInterests(ctx context.Context, name string, interests []Interest) error {
	return c.Do(ctx, http.MethodPut, jsonhttp.Path("queues", name, "interests"), interests, nil)
}
