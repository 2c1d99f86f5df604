package lookup

import (
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
)

// Config says which table to follow, and how.
type Config struct {
	// Namespace and Managers are required. Managers are the addresses of the
	// manager group, host:port; any of them will do, and one that has moved or
	// is down costs a moment.
	Namespace leasehold.Namespace
	Managers  []string

	// OnLoss, if set, is called with the losses that happen after Open, in
	// order. It runs on a goroutine of its own, one call at a time. It may take
	// its time: what it does not keep up with is told as [Lookup.Losses] says.
	// It must not call Close, which waits for it.
	OnLoss func([]leasehold.Loss)
	// OnContact, if set, is called when contact is lost, and when it is restored. It
	// runs on the goroutine of OnLoss: when it is called for a restored contact,
	// OnLoss has returned for every loss that happened before. A loss of contact that
	// ends while a call is running may be skipped. It must not call Close.
	OnContact func(Contact)

	// Poll is how often to ask whether the table is complete. Changes arrive
	// unasked; asking proves that none was missed. Default 5 s.
	Poll time.Duration
	// Stale is how old that proof may become before contact counts as lost. A short
	// one tells callers soon that they may have missed a loss; a long one rides out
	// more trouble with the network. At least three polls. Default 30 s.
	Stale time.Duration
	// ConservativeRecovery reports the whole key space as lost when contact is lost,
	// with [leasehold.CauseContact], and again every Stale until it is restored.
	// These are the conservative recovery notifications of PRS.
	//
	// Without it, a loss that happens while contact is lost is reported when contact
	// is restored, and not before; an outage in which nothing was lost asks no caller
	// to recreate anything. With it, every loss is reported within Stale and a bit,
	// whatever happens to managers and network; but callers recreate all state in
	// every outage of that length, and mostly for nothing. Set it if a caller must
	// not wait for managers, for instance because it can send its clients elsewhere.
	ConservativeRecovery bool
	// KeepLosses is how many losses are kept with all they say, for readers
	// that lag or resume. Each takes about 60 bytes. Default 8192.
	KeepLosses int

	// Credentials secure the connections to the managers: those of package secure,
	// or insecure.NewCredentials() for plain text in a network that can be trusted.
	// Default: plain text, within this computer; Managers must be on its loopback
	// then.
	Credentials credentials.TransportCredentials
	// DialOptions are added to our own, and prevail.
	DialOptions []grpc.DialOption
	// Logger hears what happens, and why. Default: nobody does.
	Logger *slog.Logger

	// Metrics, if set, is where Prometheus finds out how this lookup is: metrics that
	// begin with "leasehold_lookup_", labelled with the namespace. Lookups of one
	// namespace that have the same Metrics are added up. What they have counted stays
	// registered when they are closed, and goes on if another is opened. Find costs
	// the same with it and without.
	Metrics prometheus.Registerer
}

// maxManagers bounds the list: a group has three or five.
const maxManagers = 64

// Bounds on Poll. More often would be a flood, and the upper one keeps sums far
// from overflow.
const (
	minPoll = 10 * time.Millisecond
	maxPoll = 24 * time.Hour
)

// usualRetry is how long to wait for an answer at first. See the machine.
const usualRetry = 500 * time.Millisecond

// validate fills in defaults.
func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opOpen, leasehold.ErrInvalid, string(c.Namespace), format, args...)
	}
	if n := len(c.Managers); n == 0 || n > maxManagers {
		return bad("%d managers: want the addresses, host:port, of 1 to %d", n, maxManagers)
	}
	for i, addr := range c.Managers {
		if err := address.Check(addr, "manager-1:7400"); err != nil {
			return bad("manager %d of %d: %w", i+1, len(c.Managers), err)
		}
	}
	c.Managers = slices.Clone(c.Managers)
	if c.Poll == 0 {
		c.Poll = 5 * time.Second
	}
	if c.Poll < minPoll || c.Poll > maxPoll {
		return bad("poll %v: want %v to %v", c.Poll, minPoll, maxPoll)
	}
	if c.Stale == 0 {
		c.Stale = max(30*time.Second, 3*c.Poll)
	}
	if c.Stale < 3*c.Poll {
		return bad("poll %v and stale %v: want at least three polls in stale", c.Poll, c.Stale)
	}
	if c.KeepLosses == 0 {
		c.KeepLosses = 8192
	}
	if c.KeepLosses < 0 {
		return bad("keep %d losses: want at least one", c.KeepLosses)
	}
	if c.Credentials == nil {
		if err := address.CheckPlaintext(c.Managers...); err != nil {
			return bad("%w", err)
		}
		c.Credentials = managerconn.Plaintext()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
