package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

const (
	cookieName = "leasehold_session"
	csrfHeader = "X-Leasehold-Csrf"

	// sessionTime is how long a login lasts, whatever happens.
	sessionTime = 8 * time.Hour
	// sessionIdle is how long it lasts without an order.
	sessionIdle = time.Hour
	// maxSessions bounds how many there are. The oldest ends when there is one more.
	maxSessions = 32

	// loginBurst is how many logins may fail at once, and loginEvery how often one may
	// fail after that, whoever tries.
	loginBurst = 5
	loginEvery = 2 * time.Second
)

// sessions knows who has logged in. Its methods may be called from many goroutines at
// once.
type sessions struct {
	token [sha256.Size]byte
	off   bool // there is no token, and nobody can log in

	mu     sync.Mutex
	open   map[string]*session // by the digest of the cookie
	failed time.Time           // failures are paid for up to then
}

// A session is a login. It is guarded by the sessions' lock.
type session struct {
	csrf  string
	begun time.Time
	used  time.Time
}

func newSessions(token string) *sessions {
	return &sessions{token: sha256.Sum256([]byte(token)), off: token == "", open: make(map[string]*session)}
}

func digest(cookie string) string {
	sum := sha256.Sum256([]byte(cookie))
	return string(sum[:])
}

// A loginOutcome says what came of an attempt.
type loginOutcome int

const (
	loggedIn loginOutcome = iota
	wrongToken
	tooMany
)

// begin begins a session for who knows the token. Failures are few: a token cannot be
// guessed.
func (s *sessions) begin(token string) (cookie, csrf string, outcome loginOutcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.failed.Sub(now) > (loginBurst-1)*loginEvery {
		return "", "", tooMany
	}
	// Of digests, lest the time tells how long the token is.
	given := sha256.Sum256([]byte(token))
	if s.off || subtle.ConstantTimeCompare(given[:], s.token[:]) != 1 {
		if s.failed.Before(now) {
			s.failed = now
		}
		s.failed = s.failed.Add(loginEvery)
		return "", "", wrongToken
	}
	s.expire(now)
	cookie, csrf = rand.Text(), rand.Text()
	s.open[digest(cookie)] = &session{csrf: csrf, begun: now, used: now}
	return cookie, csrf, loggedIn
}

// expire forgets sessions that are over, and the oldest if there are too many.
func (s *sessions) expire(now time.Time) {
	oldest := ""
	for id, open := range s.open {
		if open.over(now) {
			delete(s.open, id)
			continue
		}
		if oldest == "" || open.begun.Before(s.open[oldest].begun) {
			oldest = id
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.begun) >= sessionTime || now.Sub(s.used) >= sessionIdle
}

// find returns the token against forgery of the session that a request belongs to; ""
// if it belongs to none.
func (s *sessions) find(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.open[digest(cookie.Value)]
	if open == nil || open.over(time.Now()) {
		return ""
	}
	return open.csrf
}

// use is find for an order, which keeps the session alive. The order must carry the
// session's token.
func (s *sessions) use(r *http.Request) (known, genuine bool) {
	csrf := s.find(r)
	if csrf == "" {
		return false, false
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(csrf)) != 1 {
		return true, false
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.open[digest(cookie.Value)]; open != nil {
		open.used = time.Now()
	}
	return true, true
}

func (s *sessions) end(r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, digest(cookie.Value))
	}
}
