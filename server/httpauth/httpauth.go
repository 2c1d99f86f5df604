// Package httpauth authenticates HTTP requests for servers with an access policy: by the client
// certificate of the connection, or by a bearer token.
//
// Attempts with wrong tokens are throttled per address. The correct token is throttled as well, so
// that the delay reveals nothing. See [Throttle].
package httpauth

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// A Desk authenticates requests. Its methods are safe for concurrent use.
type Desk struct {
	policy *access.Policy
	wrong  Throttle
	audit  *Complaints
}

// New returns a desk for a policy. Wrong tokens are logged.
func New(policy *access.Policy, audit *slog.Logger) *Desk {
	return &Desk{policy: policy, audit: NewComplaints(audit)}
}

// Who returns the caller of a request: the identity of its token, or without one that of its
// certificate. Without either, the caller has only an address. The kind of the error is
// [leasehold.ErrDenied], or [leasehold.ErrLimit] after too many wrong tokens.
func (d *Desk) Who(r *http.Request) (access.Caller, error) {
	who, err := d.who(r)
	if err != nil {
		d.audit.Tell("refused", "from", r.RemoteAddr, "why", err) // without the path, which may contain a secret
		return access.Caller{}, err
	}
	return who.From(r.RemoteAddr), nil
}

func (d *Desk) who(r *http.Request) (who access.Caller, err error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) > 0:
		return d.bearer(r, values)
	case r.TLS != nil:
		return d.policy.AuthenticateTLS(r.TLS)
	}
	return access.Caller{}, nil
}

func (d *Desk) bearer(r *http.Request, values []string) (who access.Caller, err error) {
	scheme, secret, ok := strings.Cut(values[0], " ")
	switch {
	case len(values) > 1 || !ok || !strings.EqualFold(scheme, "bearer"):
		return who, leasehold.Errorf("call", leasehold.ErrDenied, "", "want one Authorization header, of the form \"Bearer TOKEN\"")
	case !private(r):
		return who, leasehold.Errorf("call", leasehold.ErrDenied, "", "the token was sent over plaintext HTTP, and others on the network can read it: replace it, and use https")
	}
	err = d.wrong.Try(Place(r), func() error {
		who, err = d.policy.Authenticate(strings.TrimSpace(secret))
		return err
	})
	return who, err
}

// private reports whether a request is protected from eavesdropping: by TLS, or because it is local.
// A request over a unix socket has no address.
func private(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return r.TLS != nil || err != nil || at.Addr().Unmap().IsLoopback()
}

// Guard permits only callers that may call a method without a namespace. The policy logs the
// rejected ones.
func (d *Desk) Guard(fullMethod string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := d.Who(r)
		if err != nil {
			refuse(w, Status(err), err)
			return
		}
		served := false
		err = d.policy.Serve(access.WithCaller(r.Context(), who), fullMethod, nil, func(ctx context.Context) error {
			served = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if err != nil && !served {
			refuse(w, Status(err), wire.ToError(err))
		}
	})
}

func refuse(w http.ResponseWriter, code int, why error) {
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, why.Error(), code)
}

// Status returns the HTTP status for an error of a desk or the policy: 401 for an unknown caller,
// 403 for a known one, and 429 for a throttled one.
func Status(err error) int {
	switch s, ok := status.FromError(err); {
	case leasehold.KindOf(wire.ToError(err)) == leasehold.ErrLimit:
		return http.StatusTooManyRequests
	case ok && s.Code() != codes.Unauthenticated:
		return http.StatusForbidden
	}
	return http.StatusUnauthorized
}

// Complaints logs rejected requests of unknown callers: the first ones individually, later ones at
// most once per second, with the number of suppressed ones. Its methods are safe for concurrent
// use.
type Complaints struct {
	logger *slog.Logger
	often  *rate.Limiter
	silent atomic.Int64
}

// NewComplaints returns Complaints that write to a logger.
func NewComplaints(logger *slog.Logger) *Complaints {
	const atOnce = 20
	return &Complaints{logger: logger, often: rate.NewLimiter(rate.Every(time.Second), atOnce)}
}

// Tell logs a rejected request. The attributes must not contain secrets.
func (c *Complaints) Tell(text string, attrs ...any) {
	if !c.often.Allow() {
		c.silent.Add(1)
		return
	}
	if more := c.silent.Swap(0); more > 0 {
		attrs = append(attrs, "not told before", more)
	}
	c.logger.Warn(text, attrs...)
}
