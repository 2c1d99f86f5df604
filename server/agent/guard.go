package agent

import (
	"mime"
	"net/http"

	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// guard rejects requests of web pages. A browser on this computer can connect to the agent like any
// program, and runs untrusted code:
//
//   - a page of another site may send requests whose responses it cannot read (cross-site request forgery).
//     Their header fields identify them, and they cannot have the content type of JSON without a preflight.
//   - a page whose own host name resolves to 127.0.0.1 can even read the responses (DNS rebinding). It
//     sends that host name: see [jsonapi.Hosts].
//
// Programs other than browsers send none of these.
func (a *Agent) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !jsonapi.Hosts(a.cfg.Hosts).Include(r.Host):
			refuse(w, http.StatusForbidden, "the agent is not called %q: use its address or localhost, or start it with --host %s", jsonapi.Clip(r.Host), jsonapi.Clip(jsonapi.Host(r.Host)))
		case cross.Check(r) != nil || r.Header.Get("Origin") != "" || jsonapi.FromOtherSite(r):
			refuse(w, http.StatusForbidden, "the agent rejects requests of web pages")
		case r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")):
			refuse(w, http.StatusUnsupportedMediaType, "the content type is %q: want application/json", jsonapi.Clip(r.Header.Get("Content-Type")))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}
