package im

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// MaxField is the maximum length of each text of a presence, in bytes.
const MaxField = 256

// A SignOn is the request of a session to publish a user.
type SignOn struct {
	Session string `json:"session"`
	Address string `json:"address"`
	Status  string `json:"status"`
	IP      string `json:"ip"`
	// If is the version of another session's presence that is replaced. Without it the user
	// must be absent.
	If leasemap.Version `json:"if,omitzero"`
	// Known is the last announced status of a lost user: if the status is the same, it is
	// not announced again.
	Known string `json:"known,omitempty"`
}

// A Change is a change of a presence. Nil fields stay.
type Change struct {
	Session string  `json:"session"`
	Address *string `json:"address,omitempty"`
	Status  *string `json:"status,omitempty"`
	IP      *string `json:"ip,omitempty"`
	// If is the required version. Default: any.
	If leasemap.Version `json:"if,omitzero"`
}

func (c *Change) apply(to *Presence) {
	set := func(field, value *string) {
		if value != nil {
			*field = *value
		}
	}
	set(&to.Address, c.Address)
	set(&to.Status, c.Status)
	set(&to.IP, c.IP)
}

func (on *SignOn) presence() Presence {
	return Presence{Address: on.Address, Status: on.Status, IP: on.IP}
}

func (on *SignOn) validate(op, user string) error {
	next := on.presence()
	return next.validate(op, user, on.Session)
}

func (c *Change) validate(op, user string) error {
	if c.Address == nil && c.Status == nil && c.IP == nil {
		return leasehold.Errorf(op, leasehold.ErrInvalid, user, "want an address, a status or an ip to change")
	}
	next := Presence{Address: "any", Status: "any", IP: "::"}
	c.apply(&next)
	return next.validate(op, user, c.Session)
}

func (p *Presence) validate(op, user, session string) error {
	_, err := netip.ParseAddr(p.IP)
	if err != nil {
		err = leasehold.Errorf(op, leasehold.ErrInvalid, user, "ip: %w; want, for example, 10.0.0.1 or 2001:db8::1", err)
	}
	return cmp.Or(validText(op, user, "session", session), validText(op, user, "address", p.Address),
		validText(op, user, "status", p.Status), validText(op, user, "ip", p.IP), err)
}

func validText(op, user, name, value string) error {
	if value == "" {
		return leasehold.Errorf(op, leasehold.ErrInvalid, user, "%s is missing", name)
	}
	if len(value) > MaxField {
		return jsonhttp.TooLarge(user, "%s has %d bytes, %d are allowed", name, len(value), MaxField)
	}
	return nil
}

// A Client is a client of the service.
type Client struct{ jsonhttp.Client }

// Get returns the presence of a user. It fails with [leasehold.ErrNotFound] if the user is
// absent.
func (c *Client) Get(ctx context.Context, user string) (Presence, error) {
	return jsonhttp.Call[Presence](ctx, c.Client, http.MethodGet, path(user), nil)
}

// SignOn publishes a user. It fails with [leasehold.ErrExists] if another session publishes it.
func (c *Client) SignOn(ctx context.Context, user string, on SignOn) (Presence, error) {
	return jsonhttp.Call[Presence](ctx, c.Client, http.MethodPut, path(user), on)
}

// Change changes a presence of the session. If it fails with [leasehold.ErrNotFound], sign on
// again.
func (c *Client) Change(ctx context.Context, user string, change Change) (Presence, error) {
	return jsonhttp.Call[Presence](ctx, c.Client, http.MethodPatch, path(user), change)
}

// Refresh extends the TTL of a presence of the session. If it fails with
// [leasehold.ErrNotFound], sign on again.
func (c *Client) Refresh(ctx context.Context, user, session string) error {
	return c.Do(ctx, http.MethodPost, path(user)+"/refresh"+jsonhttp.Query("session", session), nil, nil)
}

// SignOff removes a presence of the session, if it exists.
func (c *Client) SignOff(ctx context.Context, user, session string) error {
	return c.Do(ctx, http.MethodDelete, path(user)+jsonhttp.Query("session", session), nil, nil)
}

func path(user string) string { return jsonhttp.Path("im", user) }
