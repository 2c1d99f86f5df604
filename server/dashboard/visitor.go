package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A visitor is the origin of a request. Without an access policy all are the same, and may look.
type visitor struct {
	caller access.Caller
	key    string   // visitors with the same key have the same permissions, and share hubs
	csrf   string   // a header field of orders; "" if the visitor is not known
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

// mark is a name of data that cannot be guessed, and does not reveal the data.
func (d *Dashboard) mark(kind string, of []byte) string {
	h := hmac.New(sha256.New, []byte(d.seed+kind))
	h.Write(of) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

func (v *visitor) known() bool { return v.csrf != "" }

// genuine reports whether an order comes from our page.
func (v *visitor) genuine(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(v.csrf)) == 1
}

// may reports whether a visitor may call a method of the manager.
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
