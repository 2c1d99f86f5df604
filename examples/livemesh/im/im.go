package im

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
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

// TTL is how long a presence lasts that is neither changed nor refreshed.
const TTL = 15 * time.Minute

// Config says how presence is kept.
type Config struct {
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
	m, err := leasemap.Join(ctx, as, leasemap.Config[record]{TTL: TTL})
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

const (
	maxRequest = 16 << 10 // bytes of a request: all texts, escaped, and what is around them
	wanted     = "session, address, status and ip"
)

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.users.Owner())
	mux.Handle("GET /im/{name}", s.get)
	mux.Handle("PUT /im/{name}", jsonhttp.Body(maxRequest, wanted, s.signOn))
	mux.Handle("PATCH /im/{name}", jsonhttp.Body(maxRequest, wanted, s.change))
	mux.Handle("POST /im/{name}/refresh", s.refresh)
	mux.Handle("DELETE /im/{name}", s.signOff)
	return mux
}

func (s *Service) get(r *jsonhttp.Request) (any, error) {
	found, version, err := s.users.GetVersion(r.Name)
	if err == nil && !version.Exists() {
		err = absent("get presence", r.Name)
	}
	found.Version = version
	return found.Presence, err
}

// signOn publishes a user. It fails with [leasehold.ErrExists] if another session does, and with
// [leasehold.ErrStale] if that one's presence has another version than is to be replaced.
func (s *Service) signOn(r *jsonhttp.Request, on SignOn) (any, error) {
	const op = "sign on"
	if err := on.validate(op, r.Name); err != nil {
		return nil, err
	}
	return s.write(r, on.Known, func(e *leasemap.Entry[record]) error {
		err := owned(op, r.Name, e, on.Session)
		switch {
		case err == nil: // the same session again
		case on.If.Exists():
			err = unchanged(op, r.Name, e, on.If)
		case !e.Version.Exists():
			err = nil
		}
		e.Value = record{on.presence(), on.Session}
		return err
	})
}

func (s *Service) change(r *jsonhttp.Request, c Change) (any, error) {
	const op = "change presence"
	if err := c.validate(op, r.Name); err != nil {
		return nil, err
	}
	return s.write(r, "", func(e *leasemap.Entry[record]) error {
		err := owned(op, r.Name, e, c.Session)
		if err == nil && c.If.Exists() {
			err = unchanged(op, r.Name, e, c.If)
		}
		c.apply(&e.Value.Presence)
		return err
	})
}

// write writes a presence, and announces its status unless it is the one before, or the one
// that is known of a user who is not there.
func (s *Service) write(r *jsonhttp.Request, known string, change func(e *leasemap.Entry[record]) error) (any, error) {
	var next Presence
	version, err := s.users.Do(r.Context(), r.Name, func(e *leasemap.Entry[record]) error {
		if e.Version.Exists() {
			known = e.Value.Status
		}
		err := change(e)
		next = e.Value.Presence
		return err
	})
	if err != nil {
		return nil, err
	}
	if next.Status != known {
		s.news.add(r.Name, next.Status)
	}
	next.Version = version
	return next, nil
}

func (s *Service) refresh(r *jsonhttp.Request) (any, error) {
	const op = "refresh presence"
	session, err := sessionOf(op, r)
	if err != nil {
		return nil, err
	}
	_, err = s.users.Do(r.Context(), r.Name, func(e *leasemap.Entry[record]) error {
		e.Touch()
		return owned(op, r.Name, e, session)
	})
	return nil, err
}

func (s *Service) signOff(r *jsonhttp.Request) (any, error) {
	const op = "sign off"
	session, err := sessionOf(op, r)
	if err != nil {
		return nil, err
	}
	there := false
	_, err = s.users.Do(r.Context(), r.Name, func(e *leasemap.Entry[record]) error {
		e.Delete()
		if there = e.Version.Exists(); !there {
			return nil
		}
		return owned(op, r.Name, e, session)
	})
	if err == nil && there {
		s.news.add(r.Name, "offline")
	}
	return nil, err
}

func sessionOf(op string, r *jsonhttp.Request) (string, error) {
	session := r.URL.Query().Get("session")
	return session, validText(op, r.Name, "session", session)
}

// owned returns an error if a presence is not there, or not the session's.
func owned(op, user string, e *leasemap.Entry[record], session string) error {
	switch {
	case !e.Version.Exists():
		return absent(op, user)
	case e.Value.Session != session:
		return leasehold.Errorf(op, leasehold.ErrExists, user, "another session publishes the user; to take over, sign on with the version that is there")
	}
	return nil
}

func absent(op, user string) error {
	return leasehold.Errorf(op, leasehold.ErrNotFound, user, "the user is not there: has never signed on, has expired or was lost; sign on")
}

func unchanged(op, user string, e *leasemap.Entry[record], want leasemap.Version) error {
	if e.Version != want {
		return leasehold.Errorf(op, leasehold.ErrStale, user, "the presence has version %v, and not %v: read it again", e.Version, want)
	}
	return nil
}

const (
	maxWaiting   = 1024            // announcements
	announceTime = 5 * time.Second // is how long one may take
)

type announcement struct{ user, text string }

// An announcer tells others of changes, while requests go on.
type announcer struct {
	tell    func(ctx context.Context, user, text string) error
	log     *slog.Logger
	stopped context.CancelFunc
	waiting chan announcement
	running sync.WaitGroup
}

func newAnnouncer(cfg Config) *announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &announcer{tell: cfg.Announce, log: cfg.Logger, stopped: cancel, waiting: make(chan announcement, maxWaiting)}
	a.running.Go(func() { a.run(ctx) })
	return a
}

// add announces that a user has a status. It does not wait.
func (a *announcer) add(user, status string) {
	if a.tell == nil {
		return
	}
	select {
	case a.waiting <- announcement{user, "is now " + status}:
	default:
		a.log.Warn("not announced: too many wait already", "user", user, "status", status)
	}
}

func (a *announcer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-a.waiting:
			telling, cancel := context.WithTimeout(ctx, announceTime)
			if err := a.tell(telling, next.user, next.text); err != nil {
				a.log.Warn("not announced", "user", next.user, "text", next.text, "err", err)
			}
			cancel()
		}
	}
}

// stop drops what is waiting.
func (a *announcer) stop() {
	a.stopped()
	a.running.Wait()
}
