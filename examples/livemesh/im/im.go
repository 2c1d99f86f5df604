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

// A Presence is the public state of a user.
type Presence struct {
	Address string `json:"address"` // for messages
	Status  string `json:"status"`  // "online", "away" or any text
	IP      string `json:"ip"`      // the last known one
	// Version is the version of the last change. It is set by the server.
	Version leasemap.Version `json:"version,omitzero"`
}

// A record is a user's state on a server.
type record struct {
	Presence
	Session string `json:"session"`
}

// TTL is the lifetime of a presence after the last change or refresh.
const TTL = 15 * time.Minute

// Config configures a service.
type Config struct {
	// Announce reports changes of status, for example to a feed: a user "is now online". It
	// is called in order by a goroutine of the service. No request waits for it or fails
	// because of it: failed announcements, and those above the queue limit, are dropped.
	// Default: changes are not announced.
	Announce func(ctx context.Context, user, text string) error
	// Logger receives dropped announcements. Default: no logging.
	Logger *slog.Logger
}

// A Service is one server of presence. It is safe for concurrent use.
type Service struct {
	users *leasemap.Map[record]
	news  *announcer
}

// Join joins the namespace as an owner.
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

// Close transfers all users to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error {
	defer s.news.stop()
	return s.users.Close(ctx)
}

const (
	maxRequest = 16 << 10 // bytes of a request: all texts, escaped, and the JSON around them
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

// signOn publishes a user. It fails with [leasehold.ErrExists] if another session has published
// the user, and with [leasehold.ErrStale] if the version to replace is not the current one.
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

// write writes a presence. It announces the status unless it is unchanged, or, for an absent
// user, equal to the known one.
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

// owned returns an error if a presence is missing or belongs to another session.
func owned(op, user string, e *leasemap.Entry[record], session string) error {
	switch {
	case !e.Version.Exists():
		return absent(op, user)
	case e.Value.Session != session:
		return leasehold.Errorf(op, leasehold.ErrExists, user, "another session publishes the user; to take over, sign on with the current version")
	}
	return nil
}

func absent(op, user string) error {
	return leasehold.Errorf(op, leasehold.ErrNotFound, user, "the user is absent: never signed on, expired or lost; sign on")
}

func unchanged(op, user string, e *leasemap.Entry[record], want leasemap.Version) error {
	if e.Version != want {
		return leasehold.Errorf(op, leasehold.ErrStale, user, "the presence has version %v, not %v: read it again", e.Version, want)
	}
	return nil
}

const (
	maxWaiting   = 1024            // queued announcements
	announceTime = 5 * time.Second // timeout of one
)

type announcement struct{ user, text string }

// An announcer calls Announce for a queue of changes, in a goroutine.
type announcer struct {
	announce func(ctx context.Context, user, text string) error
	log      *slog.Logger
	stopped  context.CancelFunc
	waiting  chan announcement
	running  sync.WaitGroup
}

func newAnnouncer(cfg Config) *announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &announcer{announce: cfg.Announce, log: cfg.Logger, stopped: cancel, waiting: make(chan announcement, maxWaiting)}
	a.running.Go(func() { a.run(ctx) })
	return a
}

// add queues an announcement. It does not block.
func (a *announcer) add(user, status string) {
	if a.announce == nil {
		return
	}
	select {
	case a.waiting <- announcement{user, "is now " + status}:
	default:
		a.log.Warn("announcement dropped: queue full", "user", user, "status", status)
	}
}

func (a *announcer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-a.waiting:
			telling, cancel := context.WithTimeout(ctx, announceTime)
			if err := a.announce(telling, next.user, next.text); err != nil {
				a.log.Warn("announcement failed", "user", next.user, "text", next.text, "err", err)
			}
			cancel()
		}
	}
}

// stop drops queued announcements.
func (a *announcer) stop() {
	a.stopped()
	a.running.Wait()
}
