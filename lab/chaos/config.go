package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/nemesis"
	"github.com/leasehold-dev/leasehold/manager"
)

// Config configures a run. [DefaultConfig] has values for all fields that need one.
type Config struct {
	// Config is the cluster. The run sets its network, callbacks and Spare. If owners of another
	// program keep a history of their own, Conclude writes it into the book, when all have ended.
	// Dir is for data, logs and histories; empty: a temporary one.
	cluster.Config
	Conclude func(context.Context, *check.Book) error

	For    time.Duration // no storm begins later; 0: no limit
	Faults int           // no storm begins after this number of faults; 0: no limit
	Seed   uint64
	Kinds  []string // of faults; nil: all
	// Outage is the duration of each outage of managers, store or network; 0: 5 s to 5 min, mostly short.
	Outage time.Duration
	// Slack is added to the bound of I6, for the restart of processes on a computer with few processors.
	Slack time.Duration

	OtherFlag string   // the value of --other, for the command that repeats the run; empty: Other
	Builds    []string // descriptions of the two builds, for the report; empty: the output of their command "version"
	// Drifting is a build of package skewedclock. Then clocks run at different rates, within the
	// drift bound, and wall clocks are set. Empty: there is none.
	Drifting string
	// Beyond makes clocks run at rates beyond the bound. Keys may then have two owners, and the resulting
	// violations are excused. But no fence accepts an older token, and owners must detect it.
	Beyond bool
	Points []string // failpoints compiled into the program; empty: none

	// Soak excludes one process of each role from faults, so that it runs long, and fails if the memory,
	// goroutines or descriptors of any process grow with time.
	Soak bool
	Keep bool // the directory stays, whatever the result
}

// DefaultConfig is for a computer with two processors.
func DefaultConfig() Config {
	return Config{
		Config: cluster.Config{Shape: cluster.Etcd, Owners: 8, Callers: 2, Lease: 3 * time.Second, TTL: time.Second},
		Slack:  10 * time.Second,
	}
}

const (
	perStorm  = 24 // faults
	stormTime = 8 * time.Second
	// roundTrip is the round trip of I6: a message and its reply, the commit in between, the backoff if
	// messages cross, and the poll of a standby.
	roundTrip = 500 * time.Millisecond
)

// Validate returns an error for invalid values, by the names of the command's flags.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.ErrInvalid, "", format, args...)
	}
	switch {
	case !slices.Contains(cluster.Shapes(), c.Shape):
		return bad("--store %q: want etcd, external, flease, cluster or all", c.Shape)
	case c.For < 0:
		return bad("--for %v: want a time above 0", c.For)
	case c.Faults < 0:
		return bad("--faults %d: want a number above 0", c.Faults)
	case c.For == 0 && c.Faults == 0:
		return bad("--for %v and --faults %d: one of them must be set", c.For, c.Faults)
	case c.Owners < 1 || c.Owners > 100:
		return bad("--owners %d: want 1 to 100", c.Owners)
	case c.Shape == cluster.Embedded && c.Owners < manager.MinPeers:
		return bad("--owners %d: want at least %d with --store cluster", c.Owners, manager.MinPeers)
	case c.Callers < 1 || c.Callers > 100:
		return bad("--callers %d: want 1 to 100", c.Callers)
	case c.Lease < time.Second || c.Lease > time.Minute:
		return bad("--lease %v: want 1s to 1m", c.Lease)
	case c.TTL < 500*time.Millisecond || c.TTL > time.Minute:
		return bad("--ttl %v: want 500ms to 1m", c.TTL)
	case c.Outage < 0 || c.Outage > 0 && c.Outage < nemesis.ShortestOutage:
		return bad("--outage %v: want %v or more", c.Outage, nemesis.ShortestOutage)
	case c.Slack < 0:
		return bad("--slack %v: want 0s or more", c.Slack)
	case !vacant(c.Dir):
		return bad("--dir %s: want a directory that is empty or does not exist, because it is removed at the end", c.Dir)
	}
	return c.validateKinds()
}

// validateKinds returns an error for kinds of faults that do not exist, or that need other flags.
func (c *Config) validateKinds() error {
	all, here := nemesis.All(), nemesis.Kinds(c.setting())
	for _, name := range c.Kinds {
		at := slices.IndexFunc(all, func(f nemesis.Fault) bool { return f.Name == name })
		switch {
		case at < 0:
			return leasehold.Errorf("", leasehold.ErrInvalid, "", "--kinds %s: no such fault; --kinds help lists them", name)
		case !slices.Contains(here, name):
			return leasehold.Errorf("", leasehold.ErrInvalid, "", "--kinds %s: it requires %s", name, all[at].Takes)
		}
	}
	return nil
}

// vacant reports whether a directory is empty or does not exist: a run removes its whole content.
func vacant(dir string) bool {
	found, err := os.ReadDir(dir)
	return dir == "" || os.IsNotExist(err) || err == nil && len(found) == 0
}

func stretch(d time.Duration) time.Duration { return time.Duration(float64(d) * cluster.Drift) }

// setting returns the conditions of the nemesis, and the durations that faults depend on.
func (c *Config) setting() nemesis.Setting {
	return nemesis.Setting{
		Shape: c.Shape, Other: c.Other != "" && c.Shape != cluster.Embedded, Drift: c.Drifting != "", Beyond: c.Beyond, Points: len(c.Points) > 0, Spare: c.Soak,
		Times: nemesis.Times{Lease: c.Lease, Hold: stretch(c.Lease), TTL: c.TTL, Yield: stretch(c.TTL)},
	}
}

// bound is B of I6: (leader TTL + lease) x drift + 2 round trips.
//
// It is longer for managers without a store if most of them have lost their memory. Then there is no record
// of the granted leases: the leader waits for the longest lease that the group allows (--longest-lease, here
// lease x drift) before its census of the owners. The census takes another lease x drift if an owner has
// died: that is the lease of I6. Restarted members do not vote for leader TTL x drift: that is the TTL of I6.
func (c *Config) bound(forgot bool) time.Duration {
	b := stretch(c.TTL+c.Lease) + 2*roundTrip
	if forgot {
		b += stretch(c.Lease)
	}
	return b
}

// Replay returns the command that repeats a run.
func (c *Config) Replay() string {
	words := []string{"leasehold-lab chaos", "--store", string(c.Shape), "--seed", fmt.Sprint(c.Seed)}
	usual := DefaultConfig()
	add := func(differs bool, flag string, value any) {
		if differs {
			words = append(words, "--"+flag, fmt.Sprint(value))
		}
	}
	add(c.For > 0, "for", c.For)
	add(c.Faults > 0, "faults", c.Faults)
	add(len(c.Kinds) > 0, "kinds", strings.Join(c.Kinds, ","))
	add(c.Outage > 0, "outage", c.Outage)
	add(c.Owners != usual.Owners, "owners", c.Owners)
	add(c.Callers != usual.Callers, "callers", c.Callers)
	add(c.Lease != usual.Lease, "lease", c.Lease)
	add(c.TTL != usual.TTL, "ttl", c.TTL)
	add(c.Slack != usual.Slack, "slack", c.Slack)
	add(c.Other != "", "other", cmp.Or(c.OtherFlag, c.Other))
	for _, f := range []struct {
		set  bool
		flag string
	}{
		{c.Beyond, "--drift=beyond"},
		{c.Drifting != "" && !c.Beyond, "--drift"},
		{len(c.Points) > 0, "--failpoints"},
		{c.Soak, "--soak"},
		{c.LeasesOff, "--leases-off"},
	} {
		if f.set {
			words = append(words, f.flag)
		}
	}
	return strings.Join(words, " ")
}
