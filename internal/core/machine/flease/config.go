package flease

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Limits of a configuration.
const (
	MaxMembers = 64  // of a group: acceptors are the bits of a word
	MaxName    = 255 // bytes of a resource's name
	maxCells   = 1 << 30
)

// Config is the configuration of a process. All but Self, Incarnation, Fresh, Rand and Max must be
// the same in all processes.
type Config struct {
	Self        Process
	Incarnation uint64 // random, new with every start of the process, not 0
	// Fresh returns a new random incarnation, not 0 and other than the present one. The process
	// takes it when it must drop its state. The randomness should not come from this process alone,
	// which may have been restored from a snapshot. Default: from Rand.
	Fresh func(present uint64) uint64
	// Peers are all processes of the system, with or without Self.
	Peers []Process
	// Group returns the members of a resource's group; nil if the resource is unknown. It must be a
	// pure function of the name. Nil: all Peers.
	Group func(name string) []Process

	Lease   time.Duration // lease duration: the paper's tmax
	Epsilon time.Duration // bound on the difference of two wall clocks
	Drift   mono.Drift    // bound on the ratio of monotonic clock rates
	Renew   time.Duration // renewal interval. Default Lease/3
	// Resend is the minimum retransmission interval; it is longer if replies take longer. Default
	// Lease/20, at most 100 ms.
	Resend time.Duration
	// Backoff is the maximum backoff of a proposer after the first rejection. Default Resend/4.
	Backoff time.Duration

	Max  int        // limit of known resources. Default 1<<22
	Rand *rand.Rand // for jitter
}

const op = "flease"

func invalid(format string, args ...any) error {
	return leasehold.Errorf(op, leasehold.ErrInvalid, "", format, args...)
}

// Validate sets defaults, and reports an invalid configuration.
func (c *Config) Validate() error {
	if c.Renew == 0 {
		c.Renew = c.Lease / 3
	}
	if c.Resend == 0 {
		c.Resend = min(c.Lease/20, 100*time.Millisecond)
	}
	if c.Backoff == 0 {
		c.Backoff = c.Resend / 4
	}
	if c.Drift == 0 {
		c.Drift = 1.20
	}
	if source := c.Rand; c.Fresh == nil && source != nil {
		c.Fresh = func(uint64) uint64 { return max(1, source.Uint64()) }
	}
	if c.Max == 0 {
		c.Max = 1 << 22
	}
	switch {
	case c.Self == 0 || c.Incarnation == 0 || c.Rand == nil:
		return invalid("Self, Incarnation and Rand must be set")
	case c.Lease < 10*time.Millisecond || c.Lease > 24*time.Hour:
		return invalid("a lease of %v: want 10 ms to 24 h", c.Lease)
	case c.Epsilon <= 0:
		return invalid("an epsilon of %v: set the maximum difference of wall clocks", c.Epsilon)
	case c.Epsilon >= c.Lease:
		return invalid("epsilon %v is not less than the lease, %v: no lease could ever be acquired; use longer leases or better synchronised clocks", c.Epsilon, c.Lease)
	case !(c.Drift >= 1 && c.Drift <= 10):
		return invalid("drift is %v, want 1 to 10", float64(c.Drift))
	case c.Renew <= 0 || c.Renew > c.Lease/2:
		return invalid("renewal every %v: want two in a lease of %v", c.Renew, c.Lease)
	case c.Resend <= 0 || c.Resend > c.Lease/4 || c.Backoff <= 0 || c.Backoff > c.Lease/4:
		return invalid("resending after %v and backing off for %v: want a quarter of the lease, %v, at most", c.Resend, c.Backoff, c.Lease)
	case c.Max < 1 || c.Max > maxCells:
		return invalid("limit of %d resources: want 1 to %d", c.Max, maxCells)
	}
	return checkMembers("Members", c.Peers, false)
}

// checkMembers reports an invalid set of processes.
func checkMembers(of string, members []Process, group bool) error {
	sorted := slices.Clone(members)
	slices.Sort(sorted)
	switch {
	case len(members) == 0:
		return invalid("%s has no members: list all of them, including this one", of)
	case group && len(members) > MaxMembers:
		return invalid("%s has %d members, at most %d are allowed", of, len(members), MaxMembers)
	case sorted[0] == 0:
		return invalid("%s has a member 0: IDs begin with 1", of)
	}
	for i, id := range sorted[1:] {
		if sorted[i] == id {
			return invalid("%s has member %d twice: every member needs its own ID", of, id)
		}
	}
	return nil
}

// recovery is how long a process must be silent after a start: an earlier process may have promised
// or accepted something immediately before, for a lease whose owner's clock is ahead, and may have
// been the only one to know.
func (c *Config) recovery() (monotonic, wall time.Duration) {
	return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon
}

// interval returns the ballot interval of a time.
func (c *Config) interval(w Wall) uint64 {
	return uint64(max(0, w) / Wall(c.Lease-c.Epsilon))
}
