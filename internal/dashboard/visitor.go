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
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A visitor is who a request comes from. Without an access policy all are the same, and
// may look.
type visitor struct {
	caller access.Caller
	// key tells visitors apart who may come to be permitted different things: two that
	// have the same share what is shown.
	key string
	// csrf is what orders must carry; "" if nobody knows who it is.
	csrf string
	// login is the session, if there is one.
	login *session
}

// visitor finds out who makes a request: whoever has logged in, or else whoever the
// certificate of the connection says.
func (d *Dashboard) visitor(r *http.Request) (visitor, error) {
	nobody := visitor{caller: access.Caller{}.From(r.RemoteAddr)}
	login := d.sessions.find(r)
	switch {
	case login != nil && d.cfg.Access == nil:
		return visitor{csrf: login.csrf, login: login}, nil
	case login != nil:
		return visitor{caller: login.caller.From(r.RemoteAddr), key: login.key, csrf: login.csrf, login: login}, nil
	case d.cfg.Access == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0:
		return nobody, nil
	}
	caller, err := d.cfg.Access.AuthenticateTLS(r.TLS)
	if err != nil {
		return nobody, err
	}
	// A browser shows a certificate with each request, whoever made the page that asks:
	// like a cookie it proves nothing about that.
	leaf := r.TLS.PeerCertificates[0].Raw
	return visitor{caller: caller.From(r.RemoteAddr), key: d.mark("certificate", leaf), csrf: d.mark("csrf", leaf)}, nil
}

// mark is a name for something that nobody else can make up, and that does not tell what
// it is.
func (d *Dashboard) mark(kind string, of []byte) string {
	h := hmac.New(sha256.New, []byte(d.seed+kind))
	h.Write(of) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

// known reports whether it is known who that is.
func (v *visitor) known() bool { return v.csrf != "" }

// genuine reports whether an order comes from our page.
func (v *visitor) genuine(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(v.csrf)) == 1
}

// may reports whether a visitor may call a method of the manager.
func (d *Dashboard) may(v *visitor, fullMethod, namespace string) bool {
	return d.cfg.Access == nil || d.cfg.Access.Allow(v.caller, fullMethod, leasehold.Namespace(namespace), "") == nil
}

// look shows a visitor a namespace, for as long as the policy lets it and its login
// lasts.
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
