package flease

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Bounds of a configuration.
const (
	MaxMembers = 64  // of a group: acceptors are counted in the bits of a word
	MaxName    = 255 // bytes of a resource's name
	maxCells   = 1 << 30
)

// Config is what a process knows about the system. All but Self, Incarnation,
// Fresh, Rand and Max must be the same everywhere.
type Config struct {
	Self        Process
	Incarnation uint64 // random, new with every start of the process, not 0
	// Fresh returns another incarnation than the present one, random, not 0: the
	// process takes it when it must forget everything. Its randomness should not
	// come from this process alone, which may have been taken back to an earlier
	// state. Default: from Rand.
	Fresh func(present uint64) uint64
	// Peers are all processes of the system, Self among them or not.
	Peers []Process
	// Group returns the members of a resource's group; nil if the resource is
	// unknown. It must always return the same for a name. Nil: all Peers.
	Group func(name string) []Process

	Lease   time.Duration // how long a lease lasts: the paper's tmax
	Epsilon time.Duration // the bound on the difference of two wall clocks
	Drift   mono.Drift    // the bound on how monotonic clocks differ in rate
	Renew   time.Duration // how often a holder renews. Default Lease/3
	// Resend is when an unanswered message is sent again, at the earliest: later if
	// answers are seen to take longer. Default Lease/20, 100 ms at most.
	Resend time.Duration
	// Backoff is how long a proposer waits at most, the first time that it is
	// rejected. Default Resend/4.
	Backoff time.Duration

	Max  int        // resources that are known at a time. Default 1<<22
	Rand *rand.Rand // for jitter
}

const op = "flease"

func invalid(format string, args ...any) error {
	return leasehold.Errorf(op, leasehold.ErrInvalid, "", format, args...)
}

// Validate fills in the defaults, and says what is wrong.
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
		return invalid("an epsilon of %v: say by how much wall clocks may differ", c.Epsilon)
	case c.Epsilon >= c.Lease:
		return invalid("epsilon %v is not less than the lease, %v: no lease would ever be free to use; make leases longer, or synchronise clocks better", c.Epsilon, c.Lease)
	case !(c.Drift >= 1 && c.Drift <= 10):
		return invalid("drift is %v, want 1 to 10", float64(c.Drift))
	case c.Renew <= 0 || c.Renew > c.Lease/2:
		return invalid("renewal every %v: want two in a lease of %v", c.Renew, c.Lease)
	case c.Resend <= 0 || c.Resend > c.Lease/4 || c.Backoff <= 0 || c.Backoff > c.Lease/4:
		return invalid("resending after %v and backing off for %v: want a quarter of the lease, %v, at most", c.Resend, c.Backoff, c.Lease)
	case c.Max < 1 || c.Max > maxCells:
		return invalid("room for %d resources: want 1 to %d", c.Max, maxCells)
	}
	return checkMembers("Members", c.Peers, false)
}

// checkMembers says what is wrong with a set of processes.
func checkMembers(of string, members []Process, group bool) error {
	sorted := slices.Clone(members)
	slices.Sort(sorted)
	switch {
	case len(members) == 0:
		return invalid("%s has no members: name them all, this one among them", of)
	case group && len(members) > MaxMembers:
		return invalid("%s has %d members, %d are possible", of, len(members), MaxMembers)
	case sorted[0] == 0:
		return invalid("%s has a member 0: IDs begin with 1", of)
	}
	for i, id := range sorted[1:] {
		if sorted[i] == id {
			return invalid("%s has member %d twice: every member needs an ID of its own", of, id)
		}
	}
	return nil
}

// recovery is how long a process that starts must be silent: whoever it was
// before may have promised or accepted something a moment ago, in favour of a
// lease of someone whose clock is ahead, and may be the only one who knows.
func (c *Config) recovery() (monotonic, wall time.Duration) {
	return c.Drift.Stretch(c.Lease), c.Lease + 2*c.Epsilon
}

// interval returns the interval of ballots that a time belongs to.
func (c *Config) interval(w Wall) uint64 {
	return uint64(max(0, w) / Wall(c.Lease-c.Epsilon))
}
