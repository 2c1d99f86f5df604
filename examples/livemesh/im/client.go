package im

import (
	"context"
	"net/http"
	"net/url"

	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
)

// A Client is how frontends, and those who want to write to users, use presence.
type Client struct {
	// HTTP finds the server of a user: by a [leasehttp.Transport] with [Key], or behind a
	// gateway.
	HTTP *http.Client
	// URL is what paths are appended to: "http://im".
	URL string
}

// Get returns the presence of a user. It fails with [leasehold.NotFound] if the user is not
// there.
func (c *Client) Get(ctx context.Context, user string) (Presence, error) {
	var p Presence
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodGet, c.url(user), nil, &p)
	return p, err
}

// SignOn publishes a user. It fails with [leasehold.Exists] if another session does.
func (c *Client) SignOn(ctx context.Context, user string, on SignOn) (Presence, error) {
	var p Presence
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodPut, c.url(user), on, &p)
	return p, err
}

// Change changes a presence that the session has published. If it fails with
// [leasehold.NotFound] the user is to sign on again.
func (c *Client) Change(ctx context.Context, user string, change Change) (Presence, error) {
	var p Presence
	err := jsonhttp.Call(ctx, c.HTTP, http.MethodPatch, c.url(user), change, &p)
	return p, err
}

// Refresh lets a presence that the session has published last for another TTL. If it fails
// with [leasehold.NotFound] the user is to sign on again.
func (c *Client) Refresh(ctx context.Context, user, session string) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodPost, c.url(user)+"/refresh"+by(session), nil, nil)
}

// SignOff removes a presence that the session has published, if there is one.
func (c *Client) SignOff(ctx context.Context, user, session string) error {
	return jsonhttp.Call(ctx, c.HTTP, http.MethodDelete, c.url(user)+by(session), nil, nil)
}

func (c *Client) url(user string) string { return jsonhttp.Path(c.URL, "im", user) }

func by(session string) string { return "?" + url.Values{"session": {session}}.Encode() }
