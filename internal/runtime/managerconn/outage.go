package managerconn

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// An Outage logs that no manager serves a client, and that one does again: one line each, however often the
// client retries. It is safe for concurrent use.
type Outage struct {
	managers func() []string
	logger   *slog.Logger

	mu      sync.Mutex
	reasons map[string]error // of configured managers that have failed since one has answered
	logged  bool
}

// NewOutage returns the Outage of a client. managers returns the listed managers.
func NewOutage(managers func() []string, logger *slog.Logger) *Outage {
	return &Outage{managers: managers, logger: logger, reasons: make(map[string]error)}
}

// Failed records why a manager does not serve the client. It logs when all configured managers have failed.
func (o *Outage) Failed(from string, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	managers := o.managers()
	if !slices.Contains(managers, from) {
		return
	}
	o.reasons[from] = why
	if o.logged || slices.ContainsFunc(managers, func(addr string) bool { return o.reasons[addr] == nil }) {
		return
	}
	o.logged = true
	problem, reasons := "no manager answers", make([]string, len(managers))
	for i, addr := range managers {
		reasons[i] = addr + ": " + o.reasons[addr].Error()
		if leasehold.KindOf(o.reasons[addr]) != leasehold.ErrUnavailable {
			problem = "no manager serves this client"
		}
	}
	text := strings.Join(reasons, "; ")
	o.logger.Warn(problem+"; retrying until one does", "managers", text, "advice", advice(text))
}

// Answered records that a manager serves the client.
func (o *Outage) Answered(from string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.reasons)
	if o.logged {
		o.logged = false
		o.logger.Info("a manager serves this client", "manager", from)
	}
}

// advice returns what an operator can do about errors of managers.
func advice(errors string) string {
	has := func(part string) bool { return strings.Contains(errors, part) }
	switch {
	case has(wire.RequiresTLS):
		return "if the managers use TLS, configure certificates here, too"
	case has(wire.NoTLS) || has(wire.PerhapsNoTLS):
		return "start the managers with certificates, or omit them here"
	case has("certificate") || has("tls: "):
		return "check the certificates of both sides with 'leasehold pki show'; the manager logs why it rejects a connection"
	case has("upgrade the "):
		return "upgrade as each error says; versions may differ by 1 during an upgrade"
	case has("no leader") || has("not the leader"):
		return "start the other managers: a leader requires a majority; 'leasehold status' shows the group"
	}
	return "start a manager with 'leasehold manager run', or correct the addresses"
}
