package im

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Presence is what others see of a user.
type Presence struct {
	Address string `json:"address"` // for messages
	Status  string `json:"status"`  // "online", "away", or what the user likes
	IP      string `json:"ip"`      // the last that is known
	// Version is that of the last change. It is set by the server.
	Version leasemap.Version `json:"version,omitzero"`
}

// A record is what a server keeps of a user.
type record struct {
	Presence
	Session string `json:"session"`
}

// UsualTTL is how long a presence lasts that nobody refreshes, unless Config says otherwise.
const UsualTTL = 15 * time.Minute

// Config says how presence is kept.
type Config struct {
	// TTL is how long a presence lasts that is neither changed nor refreshed. Default
	// [UsualTTL].
	TTL time.Duration
	// Announce tells others, a feed for instance, that a user "is now online". It is
	// called when a status has changed, in order, by a goroutine of the service. No request
	// waits for it or fails because of it: what cannot be told, or comes faster than it can
	// be, is dropped. Default: changes are not announced.
	Announce func(ctx context.Context, user, text string) error
	// Logger gets what could not be announced. Default: nothing is logged.
	Logger *slog.Logger
}

// A Service is one server of presence.
type Service struct {
	users *leasemap.Map[record]
	news  *announcer
}

// Join joins the namespace as one of its servers.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := leasemap.Join(ctx, as, leasemap.Config[record]{TTL: cmp.Or(cfg.TTL, UsualTTL)})
	if err != nil {
		return nil, err
	}
	return &Service{m, newAnnouncer(cfg)}, nil
}

// Close hands all users over to other servers. They are served until they have gone.
func (s *Service) Close(ctx context.Context) error {
	defer s.news.stop()
	return s.users.Close(ctx)
}

// Get returns the presence of a user.
func (s *Service) Get(user string) (Presence, error) {
	r, version, err := s.users.Get(user)
	if err == nil && !version.Exists() {
		err = absent("get presence", user)
	}
	r.Version = version
	return r.Presence, err
}

// SignOn publishes a user. It fails with [leasehold.Exists] if another session does, and with
// [leasehold.Stale] if that one's presence has another version than is to be replaced.
func (s *Service) SignOn(ctx context.Context, user string, on SignOn) (Presence, error) {
	const op = "sign on"
	if err := on.validate(op, user); err != nil {
		return Presence{}, err
	}
	return s.write(ctx, user, func(e *leasemap.Entry[record]) (known string, err error) {
		known = on.Known
		if e.Version.Exists() {
			known = e.Value.Status
		}
		err = owned(op, user, e, on.Session)
		switch {
		case err == nil: // the same session again
		case on.If.Exists():
			err = unchanged(op, user, e, on.If)
		case !e.Version.Exists():
			err = nil
		}
		e.Value = record{on.presence(), on.Session}
		return known, err
	})
}

// Change changes a presence that the session has published.
func (s *Service) Change(ctx context.Context, user string, c Change) (Presence, error) {
	const op = "change presence"
	if err := c.validate(op, user); err != nil {
		return Presence{}, err
	}
	return s.write(ctx, user, func(e *leasemap.Entry[record]) (known string, err error) {
		if err := owned(op, user, e, c.Session); err != nil {
			return "", err
		}
		if c.If.Exists() {
			err = unchanged(op, user, e, c.If)
		}
		known = e.Value.Status
		c.apply(&e.Value.Presence)
		return known, err
	})
}

// write writes a presence, and announces its status unless it was known.
func (s *Service) write(ctx context.Context, user string, change func(e *leasemap.Entry[record]) (known string, err error)) (next Presence, err error) {
	known := ""
	version, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) (err error) {
		known, err = change(e)
		next = e.Value.Presence
		return err
	})
	if err != nil {
		return Presence{}, err
	}
	if next.Status != known {
		s.news.add(user, next.Status)
	}
	next.Version = version
	return next, nil
}

// Refresh lets a presence that the session has published last for another TTL. Its version
// stays.
func (s *Service) Refresh(ctx context.Context, user, session string) error {
	const op = "refresh presence"
	if err := validText(op, user, "session", session); err != nil {
		return err
	}
	_, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) error {
		e.Touch()
		return owned(op, user, e, session)
	})
	return err
}

// SignOff removes a presence that the session has published, if there is one.
func (s *Service) SignOff(ctx context.Context, user, session string) error {
	const op = "sign off"
	if err := validText(op, user, "session", session); err != nil {
		return err
	}
	there := false
	_, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) error {
		e.Delete()
		if there = e.Version.Exists(); !there {
			return nil
		}
		return owned(op, user, e, session)
	})
	if err == nil && there {
		s.news.add(user, "offline")
	}
	return err
}

// owned returns an error if a presence is not there, or not the session's.
func owned(op, user string, e *leasemap.Entry[record], session string) error {
	switch {
	case !e.Version.Exists():
		return absent(op, user)
	case e.Value.Session != session:
		return leasehold.Errorf(op, leasehold.Exists, user, "another session publishes the user; to take over, sign on with the version that is there")
	}
	return nil
}

func absent(op, user string) error {
	return leasehold.Errorf(op, leasehold.NotFound, user, "the user is not there: has never signed on, has expired or was lost; sign on")
}

func unchanged(op, user string, e *leasemap.Entry[record], want leasemap.Version) error {
	if e.Version != want {
		return leasehold.Errorf(op, leasehold.Stale, user, "the presence has version %v, and not %v: read it again", e.Version, want)
	}
	return nil
}
