package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/httpauth"
)

const (
	cookiePrefix = "leasehold_session"
	csrfHeader   = "X-Leasehold-Csrf"

	// sessionTime is the maximum duration of a login.
	sessionTime = 8 * time.Hour
	// sessionIdle is its maximum duration without an order, or with a policy without an open stream.
	sessionIdle = time.Hour
	// maxSessions bounds the sessions per token. One more ends the oldest.
	maxSessions = 32
)

// cookieName is the name of a session cookie. Browsers send cookies to all ports of a host, which may
// have several managers: each has a unique name. Over TLS the name has the prefix that browsers
// accept from this host only.
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

// An authentication returns the caller of a token.
type authentication func(token string) (access.Caller, error)

// sessions are the logins. It is safe for concurrent use.
type sessions struct {
	whose  authentication // nil: login is disabled
	failed httpauth.Throttle

	mu   sync.Mutex
	open map[string]*session // by the digest of the cookie
}

// A session is a login.
type session struct {
	caller access.Caller
	key    string // of the token
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

func (d *Dashboard) authentication() authentication {
	switch {
	case d.cfg.Access != nil:
		return d.cfg.Access.Authenticate
	case d.cfg.Token.Len() > 0:
		return only(d.cfg.Token)
	}
	return nil
}

// only accepts one token. It compares digests, so that the time does not reveal its length.
func only(token secret.Text) authentication {
	want := secret.New(digest(token.Reveal()))
	return func(token string) (access.Caller, error) {
		if !want.Equal(secret.New(digest(token))) {
			return access.Caller{}, leasehold.Errorf("log in", leasehold.ErrDenied, "", "that is not the administrator's token")
		}
		return access.Caller{}, nil
	}
}

func digest(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return string(sum[:])
}

// begin starts a session for a token. Failed attempts are throttled per place.
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

// expire removes expired sessions, and the oldest one of a key above its limit.
func (s *sessions) expire(now time.Time, key string) {
	var ids []string
	for id, open := range s.open {
		switch {
		case open.over(now):
			s.remove(id)
		case open.key == key:
			ids = append(ids, id)
		}
	}
	if len(ids) >= maxSessions {
		s.remove(slices.MinFunc(ids, func(a, b string) int { return s.open[a].begun.Compare(s.open[b].begun) }))
	}
}

// remove ends a session. The lock is held.
func (s *sessions) remove(id string) {
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

func (s *session) touch() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
}

// lasts returns a context that ends with the session; s may be nil.
func (s *session) lasts(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s == nil {
		return ctx, cancel
	}
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

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

func (s *sessions) end(r *http.Request) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(digest(cookie.Value))
	}
}

func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		s.remove(id)
	}
}

// A visitor is the caller of a request. Without an access policy all visitors are equal, and may view.
type visitor struct {
	caller access.Caller
	key    string   // visitors with the same key have the same permissions, and share hubs
	csrf   string   // a header field of orders; "" without authentication
	login  *session // nil without one
}

// visitor authenticates a request by its session, or else by the certificate of its connection.
func (d *Dashboard) visitor(r *http.Request) (visitor, error) {
	anonymous := visitor{caller: access.Caller{}.From(r.RemoteAddr)}
	login := d.sessions.find(r)
	switch {
	case login != nil && d.cfg.Access == nil:
		return visitor{csrf: login.csrf, login: login}, nil
	case login != nil:
		return visitor{caller: login.caller.From(r.RemoteAddr), key: login.key, csrf: login.csrf, login: login}, nil
	case d.cfg.Access == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0:
		return anonymous, nil
	}
	caller, err := d.cfg.Access.AuthenticateTLS(r.TLS)
	if err != nil {
		return anonymous, err
	}
	// A browser shows its certificate with each request, also for pages of other sites: as with a cookie,
	// an order needs a second token.
	leaf := r.TLS.PeerCertificates[0].Raw
	return visitor{caller: caller.From(r.RemoteAddr), key: d.mark("certificate", leaf), csrf: d.mark("csrf", leaf)}, nil
}

// mark returns an unguessable digest of data.
func (d *Dashboard) mark(kind string, of []byte) string {
	h := hmac.New(sha256.New, []byte(d.seed+kind))
	h.Write(of) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

func (v *visitor) known() bool { return v.csrf != "" }

func (v *visitor) genuine(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(v.csrf)) == 1
}

func (d *Dashboard) may(v *visitor, fullMethod, namespace string) bool {
	return d.cfg.Access == nil || d.cfg.Access.Allow(v.caller, fullMethod, leasehold.Namespace(namespace), "") == nil
}

// look calls show, with a context that ends when the policy no longer permits it or the login ends.
func (d *Dashboard) look(r *http.Request, v *visitor, namespace string, show func(context.Context)) error {
	if d.cfg.Access == nil {
		show(r.Context())
		return nil
	}
	ctx, cancel := v.login.lasts(access.WithCaller(r.Context(), v.caller))
	defer cancel()
	return d.cfg.Access.Serve(ctx, leaseholdv1.AdminService_Watch_FullMethodName,
		&leaseholdv1.WatchRequest{Version: wire.Version, Namespace: namespace},
		func(ctx context.Context) error {
			show(ctx)
			return nil
		})
}
