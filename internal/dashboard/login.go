package dashboard

import (
	"net/http"
	"strconv"
)

// A sessionJSON says what whoever asks may do.
type sessionJSON struct {
	Possible bool   `json:"possible"` // somebody can log in here
	Admin    bool   `json:"admin"`    // whoever asks has
	CSRF     string `json:"csrf"`     // what orders must carry
}

const noAdmin = "this manager was started without --admin-token-file: it only shows; give orders with leasehold drain and leasehold move"

// session says what the browser that asks may do.
func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) {
	csrf := d.sessions.find(r)
	answer(w, http.StatusOK, sessionJSON{Possible: !d.sessions.off, Admin: csrf != "", CSRF: csrf})
}

// login begins a session.
func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	if d.sessions.off {
		refuseWith(w, http.StatusForbidden, noAdmin)
		return
	}
	var request struct {
		Token string `json:"token"`
	}
	if !read(w, r, &request) {
		return
	}
	cookie, csrf, outcome := d.sessions.begin(request.Token)
	switch outcome {
	case tooMany:
		d.cfg.Logger.Warn("a login to the dashboard was refused: too many have failed", "from", r.RemoteAddr)
		w.Header().Set("Retry-After", strconv.Itoa(int(loginEvery.Seconds())))
		refuseWith(w, http.StatusTooManyRequests, "too many logins have failed: wait a few seconds")
	case wrongToken:
		d.cfg.Logger.Warn("a login to the dashboard failed: the token is wrong", "from", r.RemoteAddr)
		refuseWith(w, http.StatusForbidden, "that is not the administrator's token")
	case loggedIn:
		d.cfg.Logger.Info("an administrator has logged in to the dashboard", "from", r.RemoteAddr)
		d.setCookie(w, r, cookie, int(sessionTime.Seconds()))
		answer(w, http.StatusOK, sessionJSON{Possible: true, Admin: true, CSRF: csrf})
	}
}

// logout ends a session. Whoever has the cookie may.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	d.sessions.end(r)
	d.setCookie(w, r, "", -1)
	answer(w, http.StatusOK, sessionJSON{Possible: !d.sessions.off})
}

func (d *Dashboard) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/api/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// authorized lets only an administrator's orders through.
func (d *Dashboard) authorized(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.sessions.off {
			refuseWith(w, http.StatusForbidden, noAdmin)
			return
		}
		switch known, genuine := d.sessions.use(r); {
		case !known:
			refuseWith(w, http.StatusForbidden, "this is for administrators: log in first; a login lasts for an hour without an order, and eight at most")
		case !genuine:
			refuseWith(w, http.StatusForbidden, "the order lacks the token of its session ("+csrfHeader+"): load the page again")
		default:
			next(w, r)
		}
	})
}
