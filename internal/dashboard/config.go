package dashboard

import (
	"crypto/rand"
	"log/slog"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/callers"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
)

// Config is what a dashboard is told when it is made.
type Config struct {
	// Admin answers for the manager that serves the dashboard. If there is a policy it
	// must go by the same, as manager.Manager's does.
	Admin leaseholdv1.AdminServiceServer
	// Access, if set, says who may look and order, and about what: whoever has a client
	// certificate, or logs in with a token of the policy. It is for TLS. Default:
	// everybody may look, and who has the Token may order.
	Access *access.Policy
	// Token is what an administrator logs in with, of MinToken bytes or more. Empty:
	// nobody can, and the dashboard only shows.
	Token secret.Text
	// Hosts are the names under which it may be asked for, without port, besides
	// localhost and addresses written as numbers.
	Hosts []string
	// MaxViewers bounds the streams that are open. Default 128.
	MaxViewers int
	// Logger gets logins, those that failed, and orders. Default slog.Default().
	Logger *slog.Logger
}

// MinToken is how short an administrator's token may be: shorter ones can be guessed.
const MinToken = 16

func (c *Config) validate() error {
	switch {
	case c.Admin == nil:
		return leasehold.Errorf("dashboard", leasehold.ErrInvalid, "", "Admin must be set")
	case 0 < c.Token.Len() && c.Token.Len() < MinToken:
		return leasehold.Errorf("dashboard", leasehold.ErrInvalid, "", "the administrator's token has %d bytes, want %d or more", c.Token.Len(), MinToken)
	case c.Token.Len() > 0 && c.Access != nil:
		return leasehold.Errorf("dashboard", leasehold.ErrInvalid, "", "Token is for a dashboard without a policy: with Access, log in with a token that is in it")
	case c.MaxViewers < 0:
		return leasehold.Errorf("dashboard", leasehold.ErrInvalid, "", "MaxViewers is %d, want 0 or more", c.MaxViewers)
	}
	if c.MaxViewers == 0 {
		c.MaxViewers = 128
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// A Dashboard serves the page and what it asks for. It is an [http.Handler], for many
// goroutines at once.
type Dashboard struct {
	cfg      Config
	hubs     *hubs
	sessions *sessions
	refused  *callers.Complaints
	seed     string // of marks
	handler  http.Handler
}

// New returns a dashboard. It must be closed.
func New(cfg Config) (*Dashboard, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	d := &Dashboard{cfg: cfg, refused: callers.NewComplaints(cfg.Logger), seed: rand.Text()}
	d.sessions = newSessions(d.authentication())
	d.hubs = newHubs(cfg.Admin, cfg.MaxViewers)
	if cfg.Access != nil {
		d.hubs.mostEach = max(1, cfg.MaxViewers/4)
		d.hubs.may = func(c access.Caller, fullMethod string) bool { return cfg.Access.Allow(c, fullMethod, "", "") == nil }
	}
	d.handler = d.routes()
	return d, nil
}

// ServeHTTP answers a browser.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// Close ends all logins and streams, and waits for what runs behind them. Requests under way end
// by themselves.
func (d *Dashboard) Close() {
	d.sessions.close()
	d.hubs.close()
}
