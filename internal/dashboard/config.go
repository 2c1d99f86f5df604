package dashboard

import (
	"log/slog"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Config is what a dashboard is told when it is made.
type Config struct {
	// Admin answers for the manager that serves the dashboard.
	Admin leaseholdv1.AdminServiceServer
	// Token is what an administrator logs in with, of MinToken bytes or more. Empty:
	// nobody can, and the dashboard only shows.
	Token string
	// Hosts are the names under which it may be asked for, without port, besides
	// localhost and addresses written as numbers.
	Hosts []string
	// MaxViewers bounds the streams that are open. Default 128.
	MaxViewers int
	// Logger gets logins and orders. Default slog.Default().
	Logger *slog.Logger
}

// MinToken is how short an administrator's token may be: shorter ones can be guessed.
const MinToken = 16

func (c *Config) validate() error {
	switch {
	case c.Admin == nil:
		return leasehold.Errorf("dashboard", leasehold.Invalid, "", "Admin must be set")
	case c.Token != "" && len(c.Token) < MinToken:
		return leasehold.Errorf("dashboard", leasehold.Invalid, "", "the administrator's token has %d bytes, want %d or more", len(c.Token), MinToken)
	case c.MaxViewers < 0:
		return leasehold.Errorf("dashboard", leasehold.Invalid, "", "MaxViewers is %d, want 0 or more", c.MaxViewers)
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
	handler  http.Handler
}

// New returns a dashboard. It must be closed.
func New(cfg Config) (*Dashboard, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	d := &Dashboard{cfg: cfg, hubs: newHubs(cfg.Admin, cfg.MaxViewers), sessions: newSessions(cfg.Token)}
	d.handler = d.routes()
	return d, nil
}

// ServeHTTP answers a browser.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// Close ends all streams, and waits for what runs behind them. Requests under way end
// by themselves.
func (d *Dashboard) Close() { d.hubs.close() }
