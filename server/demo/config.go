package demo

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/server/supervisor"
)

// Config configures the cluster and the faults. All fields but For, Seed and Keep
// must be set; [DefaultConfig] does.
type Config struct {
	// Program is the leasehold command, which runs managers and owners.
	Program string

	// For is how long callers call; 0 is until the context ends. A recovery that is under
	// way at the end is waited for.
	For time.Duration

	// Store is where managers have their tables: on [Disk], each with a part of a shared
	// store, or with [Flease] in memory only.
	Store string

	Managers  int // an odd number, or one more manager brings no safety
	Owners    int
	Users     int // each has one key, and at most one request under way
	Rate      int // requests per second, of all users together
	ValueSize int // bytes of a status

	// Rolling has all owners restarted, one after the other and repeatedly, and no other
	// fault. Every user has a status before that, and all are read at the end. Rounds is how
	// often each owner is restarted; 0 is as often as there is time.
	Rolling bool
	Rounds  int

	// Outage has all managers killed for so long, once, and no other fault. Every user has a
	// status before that, and all are read at the end. 0 is none.
	Outage time.Duration

	// Supervised has servers run under "leasehold run": the keys of a server that is killed have
	// the next owner within milliseconds.
	Supervised bool

	// Lease is how long leases last. Without supervisors, the keys of a server that is killed have
	// no owner for 1.2 times as long, unless it is back sooner and proves that its predecessor is
	// gone. It must be longer than a failover, which takes 2 to 3 s, and 4 to 6 s if the store loses its
	// own leader with ours: otherwise leases expire while no leader can renew them.
	Lease time.Duration

	// KillEvery is the mean time between two kills of an owner, and between two of a
	// leader, after the first of each.
	KillEvery time.Duration
	// Seed decides the choice and the times of faults, apart from the timing of processes.
	Seed uint64

	// TLS has all processes use TLS, with certificates that are issued for the demo and
	// replaced while it runs, and managers enforce an access policy.
	TLS bool

	// Keep keeps the data and the logs.
	Keep bool
}

// The values of Config.Store.
const (
	Disk   = "disk"
	Flease = "flease"
)

const (
	minFor    = 10 * time.Second // enough to kill and replace a leader and an owner
	minLease  = 6 * time.Second
	minOutage = time.Second
	maxLease  = time.Minute
	maxUsers  = 2_000_000
)

// DefaultConfig is for a computer with two processors.
func DefaultConfig() Config {
	return Config{
		Store: Disk, Managers: 3, Owners: 5, Users: 2000, Rate: 1000, ValueSize: 40,
		Supervised: supervisor.Supported, Lease: 10 * time.Second, KillEvery: 12 * time.Second,
	}
}

// Validate checks the configuration. Errors name the command's flags.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.ErrInvalid, "", format, args...)
	}
	for _, n := range []struct {
		flag              string
		value, from, upTo int
	}{
		{"managers", c.Managers, 3, 9}, {"owners", c.Owners, 2, 64}, {"users", c.Users, 1, maxUsers}, {"rate", c.Rate, 1, 100_000},
		{"value-size", c.ValueSize, 1, maxText}, {"rounds", c.Rounds, 0, 1_000_000},
	} {
		if n.value < n.from || n.value > n.upTo {
			return bad("--%s %d: want %d to %d", n.flag, n.value, n.from, n.upTo)
		}
	}
	switch {
	case c.Program == "":
		return bad("no program to start managers and owners with")
	case c.Store != Disk && c.Store != Flease:
		return bad("--store %q: want %s or %s", c.Store, Disk, Flease)
	case c.Rounds > 0 && !c.Rolling:
		return bad("--rounds %d: it is for --rolling-restart", c.Rounds)
	case c.Outage < 0 || c.Outage > 0 && c.Outage < minOutage:
		return bad("--outage %v: want at least %v", c.Outage, minOutage)
	case c.Outage > 0 && (c.Rolling || c.TLS || c.Store == Flease):
		return bad("--outage %v: it cannot be combined with --rolling-restart or --tls, and managers without a store (--store %s) forget their table when all are killed", c.Outage, Flease)
	case c.Outage.Seconds()*float64(c.Rate) > maxWaiting/2:
		return bad("--outage %v at --rate %d: too many requests would wait for its end, %d at most", c.Outage, c.Rate, maxWaiting/2)
	case c.Supervised && !supervisor.Supported:
		return bad("supervisors need Linux: use --no-supervisor")
	case c.Rolling && !proc.CanPause:
		return bad("--rolling-restart: this system has no signal that asks a process to end")
	case c.For != 0 && c.For < minFor:
		return bad("--for %v: want at least %v, in which a leader and an owner are killed and replaced", c.For, minFor)
	case c.Lease < minLease || c.Lease > maxLease:
		return bad("--lease %v: want %v to %v; it must outlast a failover", c.Lease, minLease, maxLease)
	case c.KillEvery < time.Second:
		return bad("--kill-every %v: want at least 1s", c.KillEvery)
	}
	return nil
}

func (c *Config) scheme() string {
	if c.TLS {
		return "https"
	}
	return "http"
}

// keepsStatuses reports whether no status may be lost, so that all are set before and read
// afterwards.
func (c *Config) keepsStatuses() bool { return c.Rolling || c.Outage > 0 }

// renew is the interval of renewals. It is short, so that little of the lease has passed
// when the leader is killed.
func (c *Config) renew() time.Duration { return c.Lease / 10 }

// supervisor is the command that runs the servers.
func (c *Config) supervisor() []string {
	if !c.Supervised {
		return nil
	}
	return []string{c.Program, "run", "--"}
}
