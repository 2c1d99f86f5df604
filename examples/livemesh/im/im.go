package im

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Presence is the public state of a user.
type Presence struct {
	Address string `json:"address"` // for messages
	Status  string `json:"status"`  // "online", "away" or any text
	IP      string `json:"ip"`      // the last known one
}

// A record is a user's state on a server.
type record struct {
	Presence
	Session string `json:"session"`
}

// A SignOn is the request of a session to publish a user.
type SignOn struct {
	record
	// Renew repeats a presence that was published before: see the package's documentation.
	Renew bool `json:"renew,omitempty"`
}

const (
	TTL        = 15 * time.Minute // after the last change or refresh
	MaxField   = 256              // bytes of each text
	maxRequest = 16 << 10         // bytes of a request: all texts, escaped, and the JSON around them
)

// A Service is one server of presence. It is safe for concurrent use.
type Service struct{ users *leasemap.Map[record] }

// Join joins the namespace as an owner.
func Join(ctx context.Context, as owner.Config) (*Service, error) {
	m, err := leasemap.Join(ctx, as, leasemap.Config[record]{TTL: TTL})
	if err != nil {
		return nil, err
	}
	return &Service{m}, nil
}

// Close transfers all users to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error { return s.users.Close(ctx) }

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.users.Owner(), maxRequest)
	jsonhttp.Handle(mux, "GET /im/{name}", s.get)
	jsonhttp.Handle(mux, "PUT /im/{name}", s.signOn)
	jsonhttp.Handle(mux, "DELETE /im/{name}", s.signOff)
	return mux
}

func (s *Service) get(r *jsonhttp.Request, _ jsonhttp.None) (Presence, error) {
	found, exists, err := s.users.Get(r.Name)
	if err == nil && !exists {
		err = leasehold.Errorf("get presence", leasehold.ErrNotFound, r.Name, "the user is absent: never signed on, expired or lost")
	}
	return found.Presence, err
}

// signOn publishes a user, and returns the version of the presence.
func (s *Service) signOn(r *jsonhttp.Request, on SignOn) (leasemap.Version, error) {
	if err := on.validate(r.Name); err != nil {
		return leasemap.Version{}, err
	}
	return s.users.Do(r.Context(), r.Name, func(e *leasemap.Entry[record]) error {
		if on.Renew && e.Version.Exists() && e.Value.Session != on.Session {
			return otherSession("sign on", r.Name)
		}
		if e.Value == on.record {
			e.Touch()
		}
		e.Value = on.record
		return nil
	})
}

func otherSession(op, user string) error {
	return leasehold.Errorf(op, leasehold.ErrExists, user, "another session has published the user")
}

func (s *Service) signOff(r *jsonhttp.Request, _ jsonhttp.None) (none jsonhttp.None, err error) {
	_, err = s.users.Do(r.Context(), r.Name, func(e *leasemap.Entry[record]) error {
		if e.Version.Exists() && e.Value.Session != r.URL.Query().Get("session") {
			return otherSession("sign off", r.Name)
		}
		e.Delete()
		return nil
	})
	return none, err
}

func (r *record) validate(user string) error {
	const op = "sign on"
	for name, value := range map[string]string{"session": r.Session, "address": r.Address, "status": r.Status} {
		if value == "" || len(value) > MaxField {
			return leasehold.Errorf(op, leasehold.ErrInvalid, user, "want a %s of up to %d bytes", name, MaxField)
		}
	}
	if _, err := netip.ParseAddr(r.IP); err != nil {
		return leasehold.Errorf(op, leasehold.ErrInvalid, user, "ip: %w; want, for example, 10.0.0.1 or 2001:db8::1", err)
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

// SignOn publishes a user. With renew it fails with [leasehold.ErrExists] if another session has
// published the user.
func (c *Client) SignOn(ctx context.Context, user, session string, what Presence, renew bool) (leasemap.Version, error) {
	return jsonhttp.Call[leasemap.Version](ctx, c.Client, http.MethodPut, path(user), SignOn{record{what, session}, renew})
}

// SignOff removes a presence of the session, if it exists.
func (c *Client) SignOff(ctx context.Context, user, session string) error {
	return c.Do(ctx, http.MethodDelete, path(user)+"?session="+url.QueryEscape(session), nil)
}

func path(user string) string { return jsonhttp.Path("im", user) }
