package dashboard

import (
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

//go:embed page
var page embed.FS

// policy lets the page load its own files and talk to its own manager, and nothing
// else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// transport keeps browsers from asking in plain text. It is about a host, whatever the
// port: so it is short, and says nothing about other hosts.
const transport = "max-age=86400"

const otherSite = "this request comes from another site"

// routes says who answers what.
func (d *Dashboard) routes() http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the name is that of the directory above
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", cached(http.FileServerFS(files)))
	mux.HandleFunc("GET /api/stream", d.stream)
	mux.Handle("GET /api/explain", d.seen(d.explain))
	mux.HandleFunc("GET /api/session", d.session)
	mux.HandleFunc("POST /api/login", d.login)
	mux.HandleFunc("POST /api/logout", d.logout)
	mux.Handle("POST /api/drain", d.authorized(d.drain))
	mux.Handle("POST /api/move", d.authorized(d.move))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuseWith(w, http.StatusForbidden, otherSite)
	}))
	return d.guarded(sameSite(protection.Handler(mux)))
}

// sameSite refuses questions that a browser asks for another site. It cannot read the
// answer, but every stream takes the place of somebody who looks.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		if strings.HasPrefix(r.URL.Path, "/api/") && (site == "cross-site" || site == "same-site") {
			refuseWith(w, http.StatusForbidden, otherSite)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guarded sets what every answer has, and refuses requests for a host that is not ours:
// a site whose name leads to our address would otherwise be of the same origin as we.
func (d *Dashboard) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", transport)
		}
		if tokenInAddress(r) {
			refuseWith(w, http.StatusBadRequest, "a token is no part of an address, which is kept in logs and histories: replace it, and log in")
			return
		}
		if !d.ours(r.Host) {
			refuseWith(w, http.StatusForbidden, "this manager is not known as "+clip(r.Host)+": ask for it by its address, or start it with --dashboard-hosts and this name")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tokenInAddress reports whether somebody has put a secret where it is not kept.
func tokenInAddress(r *http.Request) bool {
	for name := range r.URL.Query() {
		switch strings.ToLower(name) {
		case "token", "access_token", "bearer", "authorization":
			return true
		}
	}
	return false
}

// ours reports whether a request may be for that host.
func (d *Dashboard) ours(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil ||
		slices.ContainsFunc(d.cfg.Hosts, func(known string) bool { return strings.EqualFold(known, host) })
}

// cached lets browsers keep files only if they ask whether they are still good: after
// an upgrade the page must fit the manager.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// An answerJSON is the body of an answer that says that something went wrong.
type answerJSON struct {
	Error string `json:"error"`
}

// refuse says why a request is not answered.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch leasehold.KindOf(err) {
	case leasehold.ErrInvalid:
		status = http.StatusUnprocessableEntity
	case leasehold.ErrDenied:
		status = http.StatusForbidden
	case leasehold.ErrNotFound:
		status = http.StatusNotFound
	case leasehold.ErrLimit, leasehold.ErrUnavailable, leasehold.ErrNotLeader, leasehold.ErrClosed:
		status = http.StatusServiceUnavailable
	default: // what no question or order can come to
	}
	refuseWith(w, status, err.Error())
}

func refuseWith(w http.ResponseWriter, status int, why string) {
	answer(w, status, answerJSON{Error: why})
}

// answer sends a small JSON document.
func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // a client that is gone needs no answer
}

// maxBody bounds the body of a request.
const maxBody = 16 << 10

// read reads the JSON document of a request.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = leasehold.Errorf("read", leasehold.ErrInvalid, "", "there is more than one document")
		}
	}
	if err != nil {
		refuseWith(w, http.StatusBadRequest, "the body is not what it should be: "+err.Error())
	}
	return err == nil
}

// clip makes what somebody sent short enough for an answer.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
