package dashboard

import (
	"net/http"
	"strconv"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/httpauth"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// A sessionJSON describes the permissions of a visitor.
type sessionJSON struct {
	Possible bool   `json:"possible"` // login is available
	Required bool   `json:"required"` // viewers must authenticate
	LoggedIn bool   `json:"loggedIn"`
	Who      string `json:"who"`   // "" without a policy
	Admin    bool   `json:"admin"` // has the permission for orders in the namespace of the request
	CSRF     string `json:"csrf"`  // a header field of orders
}

const (
	noAdmin = "this manager was started without --admin-token-file: it only shows; give orders with leasehold owner drain and leasehold range move"
	notSeen = "this is for administrators: log in first; a login lasts for an hour without an order, and eight at most"
	unknown = "log in first, with a token, or show a certificate: a login lasts for eight hours, and for one if nobody looks"
)

func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) {
	v, err := d.visitor(r)
	if err != nil {
		d.unauthorized(w, r, err)
		return
	}
	d.introduce(w, r, &v)
}

func (d *Dashboard) introduce(w http.ResponseWriter, r *http.Request, v *visitor) {
	says := sessionJSON{Possible: !d.sessions.off(), Required: d.cfg.Access != nil, LoggedIn: v.login != nil, CSRF: v.csrf}
	if v.known() {
		says.Admin = d.may(v, leaseholdv1.AdminService_DrainOwner_FullMethodName, r.URL.Query().Get("namespace"))
		if d.cfg.Access != nil {
			says.Who = v.caller.String()
		}
	}
	jsonapi.Write(w, http.StatusOK, says)
}

// unauthorized rejects a visitor without credentials, or with a revoked certificate.
func (d *Dashboard) unauthorized(w http.ResponseWriter, r *http.Request, err error) {
	d.refused.Tell("refused at the dashboard", "from", r.RemoteAddr, "path", r.URL.Path, "why", err)
	refuseWith(w, http.StatusUnauthorized, err.Error())
}

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	if d.sessions.off() {
		refuseWith(w, http.StatusForbidden, noAdmin)
		return
	}
	var request struct {
		Token string `json:"token"`
	}
	if !read(w, r, &request) {
		return
	}
	cookie, login, err := d.sessions.begin(httpauth.Place(r), request.Token)
	if err == nil {
		d.sessions.end(r) // the session of the previous cookie
		d.cfg.Logger.Info("dashboard login", "caller", d.named(login), "from", r.RemoteAddr)
		d.setCookie(w, r, cookie, int(sessionTime.Seconds()))
		d.introduce(w, r, &visitor{caller: login.caller, csrf: login.csrf, login: login})
		return
	}
	d.refused.Tell("a login to the dashboard has failed", "from", r.RemoteAddr, "why", err)
	if leasehold.KindOf(err) == leasehold.ErrLimit {
		w.Header().Set("Retry-After", strconv.Itoa(int(httpauth.Every.Seconds())))
		refuseWith(w, http.StatusTooManyRequests, "too many logins have failed: wait a few seconds")
		return
	}
	refuseWith(w, http.StatusForbidden, err.Error())
}

func (d *Dashboard) named(login *session) string {
	if d.cfg.Access == nil {
		return "administrator"
	}
	return login.caller.String()
}

func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	if login := d.sessions.find(r); login != nil {
		d.cfg.Logger.Info("dashboard logout", "caller", d.named(login), "from", r.RemoteAddr)
	}
	d.sessions.end(r)
	d.setCookie(w, r, "", -1)
	d.introduce(w, r, &visitor{})
}

// setCookie sets the cookie of a session. Over TLS its path is that of the whole host, as required by the
// prefix of its name. Behind a TLS proxy the cookie is secure.
func (d *Dashboard) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	path := "/api/"
	if r.TLS != nil {
		path = "/"
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // it is Secure with TLS; over plain HTTP a browser would drop it
		Name: cookieName(r), Value: value, Path: path, MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// seen requires an authenticated visitor if there is a policy. The manager authorizes the requests.
func (d *Dashboard) seen(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := d.visitor(r)
		if err == nil && d.cfg.Access != nil && !v.known() {
			err = leasehold.Errorf("look", leasehold.ErrDenied, "", "%s", unknown)
		}
		if err != nil {
			d.unauthorized(w, r, err)
			return
		}
		next(w, r.WithContext(access.WithCaller(r.Context(), v.caller)))
	})
}

// authorized requires an authenticated visitor and the CSRF token of the page. The manager authorizes
// the orders.
func (d *Dashboard) authorized(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := d.visitor(r)
		switch {
		case err != nil:
			d.unauthorized(w, r, err)
		case d.sessions.off():
			refuseWith(w, http.StatusForbidden, noAdmin)
		case !v.known() && d.cfg.Access != nil:
			d.unauthorized(w, r, leasehold.Errorf("order", leasehold.ErrDenied, "", "%s", unknown))
		case !v.known():
			refuseWith(w, http.StatusForbidden, notSeen)
		case !v.genuine(r):
			d.refused.Tell("an order was refused: it lacks the token of the page", "caller", v.caller.String(), "from", r.RemoteAddr)
			refuseWith(w, http.StatusForbidden, "the order lacks the token of its session ("+csrfHeader+"): load the page again")
		default:
			v.login.touch()
			next(w, r.WithContext(access.WithCaller(r.Context(), v.caller)))
		}
	})
}
