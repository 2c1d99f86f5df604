package agent

import (
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard refuses what a web page has sent. A browser on this computer reaches the
// agent as any program does, and runs the programs of strangers:
//
//   - a page of another site may send requests here, whose answers it cannot read
//     (cross-site request forgery). They have headers that say so, which a page
//     cannot leave out, and cannot have the content type of JSON without asking first.
//   - a page whose own name suddenly means 127.0.0.1 can even read the answers (DNS
//     rebinding). It calls the agent by that name. So we answer only to IP
//     addresses, localhost, and the names that we were told.
//
// Programs that are no browsers say nothing of the kind, and pass.
func (a *Agent) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !a.knows(r.Host):
			refuse(w, http.StatusForbidden, "the agent is not called %q: use its address or localhost, or start it with --host %s", clip(r.Host), clip(hostOf(r.Host)))
		case cross.Check(r) != nil || r.Header.Get("Origin") != "" || foreign(r.Header.Get("Sec-Fetch-Site")):
			refuse(w, http.StatusForbidden, "the agent answers to programs on this computer, and not to web pages")
		case r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")):
			refuse(w, http.StatusUnsupportedMediaType, "the content type is %q: want application/json", clip(r.Header.Get("Content-Type")))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (a *Agent) knows(host string) bool {
	host = strings.ToLower(hostOf(host))
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || slices.Contains(a.cfg.Hosts, host)
}

// foreign reports whether a browser says that the request is some other site's.
func foreign(site string) bool { return site == "cross-site" || site == "same-site" }

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}
