package im

import (
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
	// called when a status has changed, by goroutines of the service, in order for each
	// user. No request waits for it or fails because of it: what cannot be told, or comes
	// faster than it can be, is dropped. Default: nobody is told.
	Announce func(ctx context.Context, user, text string) error
	// Logger hears of what could not be announced. Default: nobody does.
	Logger *slog.Logger
}

// A Service is one server of presence.
type Service struct {
	users *leasemap.Map[record]
	crier *crier
}

// Join joins the namespace as one of its servers.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	if cfg.TTL == 0 {
		cfg.TTL = UsualTTL
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := leasemap.Join(ctx, as, leasemap.Config[record]{TTL: cfg.TTL})
	if err != nil {
		return nil, err
	}
	return &Service{m, newCrier(cfg)}, nil
}

// Close hands all users over to other servers. They are served until they have gone.
func (s *Service) Close(ctx context.Context) error {
	defer s.crier.stop()
	return s.users.Close(ctx)
}

// Owner returns what has joined the namespace.
func (s *Service) Owner() *owner.Owner { return s.users.Owner() }

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
	if err := on.validate(user); err != nil {
		return Presence{}, err
	}
	next := Presence{Address: on.Address, Status: on.Status, IP: on.IP}
	known := on.Known
	version, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) error {
		there := e.Version.Exists()
		if there {
			known = e.Value.Status
		}
		switch {
		case there && e.Value.Session == on.Session:
		case on.If.Exists() && e.Version != on.If:
			return changed(op, user, e.Version, on.If)
		case there && !on.If.Exists():
			return taken(op, user)
		}
		e.Value = record{next, on.Session}
		return nil
	})
	if err != nil {
		return Presence{}, err
	}
	if next.Version = version; next.Status != known {
		s.crier.cry(user, next.Status)
	}
	return next, nil
}

// Change changes a presence that the session has published.
func (s *Service) Change(ctx context.Context, user string, c Change) (Presence, error) {
	const op = "change presence"
	if err := c.validate(user); err != nil {
		return Presence{}, err
	}
	var was, next Presence
	version, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) error {
		if err := owned(op, user, e, c.Session); err != nil {
			return err
		}
		if c.If.Exists() && e.Version != c.If {
			return changed(op, user, e.Version, c.If)
		}
		was = e.Value.Presence
		c.apply(&e.Value.Presence)
		next = e.Value.Presence
		return nil
	})
	if err != nil {
		return Presence{}, err
	}
	if next.Version = version; next.Status != was.Status {
		s.crier.cry(user, next.Status)
	}
	return next, nil
}

// Refresh lets a presence that the session has published last for another TTL. Its version
// stays.
func (s *Service) Refresh(ctx context.Context, user, session string) error {
	const op = "refresh presence"
	if err := validSession(op, user, session); err != nil {
		return err
	}
	_, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) error {
		e.Keep()
		return owned(op, user, e, session)
	})
	if err != nil {
		return err
	}
	// If another session takes over right now, its presence lasts a little longer. That is
	// no harm.
	there, err := s.users.Touch(ctx, user)
	if err == nil && !there {
		err = absent(op, user)
	}
	return err
}

// SignOff removes a presence that the session has published, if there is one.
func (s *Service) SignOff(ctx context.Context, user, session string) error {
	const op = "sign off"
	if err := validSession(op, user, session); err != nil {
		return err
	}
	was := false
	_, err := s.users.Do(ctx, user, func(e *leasemap.Entry[record]) error {
		if was = e.Version.Exists(); !was {
			e.Keep()
			return nil
		}
		e.Delete()
		return owned(op, user, e, session)
	})
	if err == nil && was {
		s.crier.cry(user, "offline")
	}
	return err
}

// owned is what is wrong if a presence is not there, or not the session's.
func owned(op, user string, e *leasemap.Entry[record], session string) error {
	switch {
	case !e.Version.Exists():
		return absent(op, user)
	case e.Value.Session != session:
		return taken(op, user)
	}
	return nil
}

func absent(op, user string) error {
	return leasehold.Errorf(op, leasehold.NotFound, user, "the user is not there: has never signed on, has expired or was lost; sign on")
}

func taken(op, user string) error {
	return leasehold.Errorf(op, leasehold.Exists, user, "another session publishes the user; to take over, sign on with the version that is there")
}

func changed(op, user string, have, want leasemap.Version) error {
	return leasehold.Errorf(op, leasehold.Stale, user, "the presence has version %v, and not %v: read it again", have, want)
}
