package queue

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how other services, and devices, use queues.
type Client struct {
	// HTTP finds the server of a queue: by a [leasehttp.Transport] with [Key], or behind
	// a gateway.
	HTTP *http.Client
	// URL is what paths are appended to: "http://queues".
	URL string
}

func (c *Client) url(name, what string, query url.Values) string {
	return jsonhttp.Path(c.URL, "queues", name, what) + "?" + query.Encode()
}

// Enqueue adds a message. An error of kind [leasehold.Limit] says that there is no room; with
// mark there always is, and the device learns if it missed something.
func (c *Client) Enqueue(ctx context.Context, name string, body any, mark bool) (Receipt, error) {
	query := url.Values{}
	if mark {
		query.Set("overflow", "mark")
	}
	var receipt Receipt
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodPost, c.url(name, "messages", query), body, &receipt)
	return receipt, err
}

// Receive returns what comes after a place, and waits for it. It says that the device has
// all up to the place.
func (c *Client) Receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	query := url.Values{"wait": {wait.String()}}
	if at.Epoch != "" {
		query.Set("epoch", at.Epoch)
		query.Set("after", strconv.FormatUint(at.Have, 10))
	}
	var b Batch
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodGet, c.url(name, "messages", query), nil, &b)
	return b, err
}

// SetInterests says on which names of other services a device depends.
func (c *Client) SetInterests(ctx context.Context, name string, interests []Interest) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodPut, c.url(name, "interests", nil), interests, nil)
}

// Next is the place after a batch.
func (b *Batch) Next(at Place) Place {
	if b.Lost || at.Epoch == "" {
		at = Place{Epoch: b.Epoch}
	}
	if n := len(b.Messages); n > 0 {
		at.Have = b.Messages[n-1].Number
	}
	return at
}
