package dashboard

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

//go:embed page
var page embed.FS

// policy lets the page only load its own files and call its own manager.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// transport makes browsers use TLS. It applies to all ports of the host, so it is short.
const transport = "max-age=86400"

const otherSite = "this request comes from another site"

func (d *Dashboard) routes() http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", cached(http.FileServerFS(files)))
	mux.HandleFunc("GET /api/stream", d.stream)
	mux.Handle("GET /api/explain", d.seen(d.explain))
	mux.HandleFunc("GET /api/session", d.session)
	mux.HandleFunc("POST /api/login", d.login)
	mux.HandleFunc("POST /api/logout", d.logout)
	mux.Handle("POST /api/drain", d.authorized(d.ordered("drain", d.drain)))
	mux.Handle("POST /api/move", d.authorized(d.ordered("move", d.move)))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuseWith(w, http.StatusForbidden, otherSite)
	}))
	return d.guarded(sameSite(protection.Handler(mux)))
}

// sameSite rejects cross-site requests to the API: every stream uses the slot of a viewer.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") && jsonapi.FromOtherSite(r) {
			refuseWith(w, http.StatusForbidden, otherSite)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guarded sets the header fields of all responses, and rejects requests for another host
// ([jsonapi.Hosts]) or with a token in the URL.
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
		if !jsonapi.Hosts(d.cfg.Hosts).Include(r.Host) {
			refuseWith(w, http.StatusForbidden, "this manager is not known as "+jsonapi.Clip(r.Host)+": ask for it by its address, or start it with --dashboard-hosts and this name")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tokenInAddress reports whether a URL contains a secret, which logs would record.
func tokenInAddress(r *http.Request) bool {
	for name := range r.URL.Query() {
		switch strings.ToLower(name) {
		case "token", "access_token", "bearer", "authorization":
			return true
		}
	}
	return false
}

// cached makes browsers revalidate cached files: after an upgrade the page must match the manager.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

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
	default: // requests and orders produce no other kinds
	}
	refuseWith(w, status, err.Error())
}

func refuseWith(w http.ResponseWriter, status int, why string) {
	jsonapi.Write(w, status, map[string]string{"error": why})
}

// maxBody bounds the body of a request.
const maxBody = 16 << 10

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := jsonapi.Read(w, r, maxBody, into)
	if err != nil {
		refuseWith(w, http.StatusBadRequest, err.Error())
	}
	return err == nil
}
