// Package callers finds out who makes an HTTP request, for the servers that go by an
// access policy: by the certificate of its connection, or by a bearer token.
//
// Tokens that are wrong are few: whoever shows one from an address pays for it with a
// wait, and the right one waits as well, so that nobody can tell. See [Throttle].
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

// A Desk finds out who makes a request. Its methods may be called from many goroutines
// at once.
type Desk struct {
	policy *access.Policy
	wrong  Throttle
	audit  *Complaints
}

// New returns a desk that goes by a policy. The logger hears of tokens that are wrong.
func New(policy *access.Policy, audit *slog.Logger) *Desk {
	return &Desk{policy: policy, audit: NewComplaints(audit)}
}

// Who returns who makes a request: whoever its token says, or without one its
// certificate. Who shows neither is nobody, from an address. The kind of the error is
// [leasehold.ErrDenied], or [leasehold.ErrLimit] if too many tokens were wrong.
func (d *Desk) Who(r *http.Request) (access.Caller, error) {
	who, err := d.who(r)
	if err != nil {
		d.audit.Tell("refused", "from", r.RemoteAddr, "why", err) // a path may have a secret in it
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
		return who, leasehold.Errorf("call", leasehold.ErrDenied, "", "a token has come in plain text, and others on the network can read it: replace it, and use https")
	}
	err = d.wrong.Try(Place(r), func() error {
		who, err = d.policy.Authenticate(strings.TrimSpace(secret))
		return err
	})
	return who, err
}

// private reports whether nobody on a network can read along. A request by a socket of
// this computer has no address.
func private(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return r.TLS != nil || err != nil || at.Addr().Unmap().IsLoopback()
}

// Guard lets those through who may call a method, which must be about no namespace or
// about all that its caller may read. The policy writes down who may not.
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

// Status is that of an answer to somebody whom a desk or the policy has refused: 401 if
// it is not known who it is, 403 if it is, and 429 if it has asked too often.
func Status(err error) int {
	switch s, ok := status.FromError(err); {
	case leasehold.KindOf(wire.ToError(err)) == leasehold.ErrLimit:
		return http.StatusTooManyRequests
	case ok && s.Code() != codes.Unauthenticated:
		return http.StatusForbidden
	}
	return http.StatusUnauthorized
}

// Complaints write down what was refused to people that nobody knows: the first of them
// one by one, and when they do not end one a second, which says how many there were
// besides. Its methods may be called from many goroutines at once.
type Complaints struct {
	logger *slog.Logger
	often  *rate.Limiter
	silent atomic.Int64
}

// NewComplaints returns complaints that go to a logger.
func NewComplaints(logger *slog.Logger) *Complaints {
	const atOnce = 20
	return &Complaints{logger: logger, often: rate.NewLimiter(rate.Every(time.Second), atOnce)}
}

// Tell writes one down. What is told must have no secret in it.
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
