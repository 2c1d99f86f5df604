package pubsub

import (
	"context"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how others subscribe and publish.
type Client struct{ jsonhttp.Client }

// Subscribe has messages of a topic go to a queue for some time. The queue's device has
// named the topic as an interest before.
func (c *Client) Subscribe(ctx context.Context, topic, queue string, ttl time.Duration) error {
	return c.Do(ctx, http.MethodPut, subscription(topic, queue)+lasting(ttl), nil, nil)
}

// Refresh lets a subscription last for some time from now on. If it fails with
// [leasehold.ErrNotFound] messages may have been missed.
func (c *Client) Refresh(ctx context.Context, topic, queue string, ttl time.Duration) error {
	return c.Do(ctx, http.MethodPost, subscription(topic, queue)+"/refresh"+lasting(ttl), nil, nil)
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, topic, queue string) error {
	return c.Do(ctx, http.MethodDelete, subscription(topic, queue), nil, nil)
}

// Publish passes a message on to all subscribers, and returns how many there are. If it
// fails it is to be repeated.
func (c *Client) Publish(ctx context.Context, topic string, message any) (int, error) {
	done, err := jsonhttp.Call[published](ctx, c.Client, http.MethodPost, jsonhttp.Path("topics", topic, "messages"), message)
	return done.Subscribers, err
}

func subscription(topic, queue string) string {
	return jsonhttp.Path("topics", topic, "subscriptions", queue)
}

func lasting(ttl time.Duration) string { return jsonhttp.Query("ttl", ttl.String()) }
