package pubsub

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how others subscribe and publish.
type Client struct {
	// HTTP finds the server of a topic: by a [leasehttp.Transport] with [Key], or behind
	// a gateway.
	HTTP *http.Client
	// URL is what paths are appended to: "http://topics".
	URL string
}

// Subscribe has messages of a topic go to a queue for some time. The queue's device has
// named the topic as an interest before.
func (c *Client) Subscribe(ctx context.Context, topic, queue string, ttl time.Duration) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodPut, c.subscription(topic, queue)+lasting(ttl), nil, nil)
}

// Refresh lets a subscription last for some time from now on. If it fails with
// [leasehold.NotFound] messages may have been missed.
func (c *Client) Refresh(ctx context.Context, topic, queue string, ttl time.Duration) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodPost, c.subscription(topic, queue)+"/refresh"+lasting(ttl), nil, nil)
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, topic, queue string) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodDelete, c.subscription(topic, queue), nil, nil)
}

// Publish passes a message on to all subscribers, and returns how many there are. If it
// fails it is to be repeated.
func (c *Client) Publish(ctx context.Context, topic string, message any) (int, error) {
	var published Published
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodPost, jsonhttp.Path(c.URL, "topics", topic, "messages"), message, &published)
	return published.Subscribers, err
}

func (c *Client) subscription(topic, queue string) string {
	return jsonhttp.Path(c.URL, "topics", topic, "subscriptions", queue)
}

func lasting(ttl time.Duration) string { return "?" + url.Values{"ttl": {ttl.String()}}.Encode() }
