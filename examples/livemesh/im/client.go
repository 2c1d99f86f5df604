package im

import (
	"context"
	"net/http"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how frontends, and those who want to write to users, use presence.
type Client struct{ jsonhttp.Client }

// Get returns the presence of a user. It fails with [leasehold.ErrNotFound] if the user is not
// there.
func (c *Client) Get(ctx context.Context, user string) (Presence, error) {
	return jsonhttp.Call[Presence](ctx, c.Client, http.MethodGet, path(user), nil)
}

// SignOn publishes a user. It fails with [leasehold.ErrExists] if another session does.
func (c *Client) SignOn(ctx context.Context, user string, on SignOn) (Presence, error) {
	return jsonhttp.Call[Presence](ctx, c.Client, http.MethodPut, path(user), on)
}

// Change changes a presence that the session has published. If it fails with
// [leasehold.ErrNotFound] the user is to sign on again.
func (c *Client) Change(ctx context.Context, user string, change Change) (Presence, error) {
	return jsonhttp.Call[Presence](ctx, c.Client, http.MethodPatch, path(user), change)
}

// Refresh lets a presence that the session has published last for another TTL. If it fails
// with [leasehold.ErrNotFound] the user is to sign on again.
func (c *Client) Refresh(ctx context.Context, user, session string) error {
	return c.Do(ctx, http.MethodPost, path(user)+"/refresh"+jsonhttp.Query("session", session), nil, nil)
}

// SignOff removes a presence that the session has published, if there is one.
func (c *Client) SignOff(ctx context.Context, user, session string) error {
	return c.Do(ctx, http.MethodDelete, path(user)+jsonhttp.Query("session", session), nil, nil)
}

func path(user string) string { return jsonhttp.Path("im", user) }
