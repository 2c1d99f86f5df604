package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/callers"
)

const (
	cookiePrefix = "leasehold_session"
	csrfHeader   = "X-Leasehold-Csrf"

	// sessionTime is how long a login lasts, whatever happens.
	sessionTime = 8 * time.Hour
	// sessionIdle is how long it lasts without an order, or with a policy without somebody
	// who looks.
	sessionIdle = time.Hour
	// maxSessions bounds how many somebody has, and maxInAll how many there are. The
	// oldest ends when there is one more.
	maxSessions = 32
	maxInAll    = 32 * maxSessions
)

// cookieName is what a session's cookie is called. Browsers do not tell the ports of a host
// apart, and several managers may be on one: each has its own. Over TLS the name begins
// with what browsers let nobody but this very host set.
func cookieName(r *http.Request) string {
	name := cookiePrefix
	if r.TLS != nil {
		name = "__Host-" + name
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "_" + port
	}
	return name
}

// An authentication finds out whose token that is.
type authentication func(token string) (access.Caller, error)

// sessions knows who has logged in. Its methods may be called from many goroutines at
// once.
type sessions struct {
	whose  authentication // nil: nobody can log in
	failed callers.Throttle

	mu   sync.Mutex
	open map[string]*session // by the digest of the cookie
}

// A session is a login.
type session struct {
	caller access.Caller
	key    string // whose it is
	csrf   string
	begun  time.Time
	ctx    context.Context //nolint:containedctx // it ends with the session
	cancel context.CancelFunc

	mu   sync.Mutex
	used time.Time
}

func newSessions(whose authentication) *sessions {
	return &sessions{whose: whose, open: make(map[string]*session)}
}

func (s *sessions) off() bool { return s.whose == nil }

// authentication is how people log in; nil if they cannot.
func (d *Dashboard) authentication() authentication {
	switch {
	case d.cfg.Access != nil:
		return d.byPolicy
	case d.cfg.Token.Len() > 0:
		return only(d.cfg.Token.Reveal())
	}
	return nil
}

// only lets those in who know a token.
func only(token string) authentication {
	// Of digests, lest the time tells how long the token is.
	want := sha256.Sum256([]byte(token))
	return func(token string) (access.Caller, error) {
		given := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
			return access.Caller{}, leasehold.Errorf("log in", leasehold.ErrDenied, "", "that is not the administrator's token")
		}
		return access.Caller{}, nil
	}
}

func (d *Dashboard) byPolicy(token string) (access.Caller, error) {
	return d.cfg.Access.Authenticate(token)
}

func digest(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return string(sum[:])
}

// begin begins a session for who knows a token. Failures are few: a token cannot be
// guessed.
func (s *sessions) begin(place, token string) (cookie string, login *session, err error) {
	var caller access.Caller
	err = s.failed.Try(place, func() error {
		caller, err = s.whose(token)
		return err
	})
	if err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	login = &session{caller: caller, key: "token " + hex.EncodeToString([]byte(digest(token))), csrf: rand.Text(), begun: now, used: now}
	login.ctx, login.cancel = context.WithDeadline(context.Background(), now.Add(sessionTime))
	s.expire(now, login.key)
	cookie = rand.Text()
	s.open[digest(cookie)] = login
	return cookie, login, nil
}

// expire forgets sessions that are over, and the oldest of somebody who has too many, or
// of all.
func (s *sessions) expire(now time.Time, key string) {
	oldest, oldestOfAll, has := "", "", 0
	older := func(id, than string) string {
		if than == "" || s.open[id].begun.Before(s.open[than].begun) {
			return id
		}
		return than
	}
	for id, open := range s.open {
		if open.over(now) {
			s.forget(id)
			continue
		}
		oldestOfAll = older(id, oldestOfAll)
		if open.key == key {
			has++
			oldest = older(id, oldest)
		}
	}
	switch {
	case has >= maxSessions:
		s.forget(oldest)
	case len(s.open) >= maxInAll:
		s.forget(oldestOfAll)
	}
}

// forget ends a session. The lock is held.
func (s *sessions) forget(id string) {
	if open := s.open[id]; open != nil {
		open.cancel()
		delete(s.open, id)
	}
}

func (s *session) over(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.begun) >= sessionTime || now.Sub(s.used) >= sessionIdle
}

// touch keeps a session from being idle.
func (s *session) touch() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
}

// lasts returns a context that ends when the session does. Who has none, and shows a
// certificate, needs none.
func (s *session) lasts(ctx context.Context) (context.Context, context.CancelFunc) {
	if s == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// find returns the session that a request belongs to; nil if it belongs to none.
func (s *sessions) find(r *http.Request) *session {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.open[digest(cookie.Value)]
	if open == nil || open.over(time.Now()) {
		return nil
	}
	return open
}

// end ends the session that a request belongs to.
func (s *sessions) end(r *http.Request) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(digest(cookie.Value))
	}
}

// close ends all sessions.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		s.forget(id)
	}
}
