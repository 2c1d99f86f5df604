package dashboard

import (
	"crypto/rand"
	"log/slog"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/httpauth"
)

// Config configures a dashboard. Admin is required.
type Config struct {
	// Admin is the service of the manager. It must use the same policy, like that of manager.Manager.
	Admin leaseholdv1.AdminServiceServer
	// Access, if set, is the policy for visitors with a client certificate, or who log in with one of its
	// tokens. It requires TLS. Default: all visitors may view, and the Token permits orders.
	Access *access.Policy
	// Token is the administrator token, of at least MinToken bytes. Default: orders are disabled.
	Token secret.Text
	// Hosts are the names of the manager, without port, besides localhost and IP addresses.
	Hosts []string
	// MaxViewers bounds the open streams. Default 128.
	MaxViewers int
	// Logger receives logins, failed logins, and orders. Default slog.Default().
	Logger *slog.Logger
}

// MinToken is the minimum length of an administrator's token.
const MinToken = 16

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("dashboard", leasehold.ErrInvalid, "", format, args...)
	}
	switch {
	case c.Admin == nil:
		return bad("Admin must be set")
	case 0 < c.Token.Len() && c.Token.Len() < MinToken:
		return bad("the administrator's token has %d bytes, want %d or more", c.Token.Len(), MinToken)
	case c.Token.Len() > 0 && c.Access != nil:
		return bad("Token is for a dashboard without a policy: with Access, log in with a token that is in it")
	case c.MaxViewers < 0:
		return bad("MaxViewers is %d, want 0 or more", c.MaxViewers)
	}
	if c.MaxViewers == 0 {
		c.MaxViewers = 128
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// A Dashboard serves the page and its API. It is an [http.Handler], and is safe for concurrent use.
type Dashboard struct {
	cfg      Config
	client   *admin.Client // of the manager
	hubs     *hubs
	sessions *sessions
	refused  *httpauth.Complaints
	seed     string // of marks
	handler  http.Handler
}

// New returns a dashboard. It must be closed.
func New(cfg Config) (*Dashboard, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	d := &Dashboard{cfg: cfg, client: admin.NewLocal(cfg.Admin), refused: httpauth.NewComplaints(cfg.Logger), seed: rand.Text()}
	d.sessions = newSessions(d.authentication())
	d.hubs = newHubs(d.client, cfg.MaxViewers)
	if cfg.Access != nil {
		d.hubs.mostEach = max(1, cfg.MaxViewers/4)
		d.hubs.may = func(c access.Caller, fullMethod string) bool { return cfg.Access.Allow(c, fullMethod, "", "") == nil }
	}
	d.handler = d.routes()
	return d, nil
}

func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// Close ends all sessions and streams, and waits for their hubs. Other requests are not waited for.
func (d *Dashboard) Close() {
	d.sessions.close()
	d.hubs.close()
}
