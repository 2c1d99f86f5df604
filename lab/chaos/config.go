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
)

// Config says what to run and which faults to inject. [DefaultConfig] has all that need not be
// chosen.
type Config struct {
	// Config is the cluster. The run sets its network, callbacks and Spare. If owners of another
	// program keep a history of their own, Conclude writes it into the book, when all have ended.
	// Dir is for data, logs and histories; empty: a temporary one.
	cluster.Config
	Conclude func(context.Context, *check.Book) error

	For    time.Duration // for how long storms begin; 0: until there were enough faults
	Faults int           // after so many no storm begins any more; 0: until the time is over
	Seed   uint64
	Kinds  []string // of faults; nil: all
	// Outage is how long each outage of managers, store or network lasts; 0: 5 s to 5 min, mostly short.
	Outage time.Duration
	// Slack is added to the bound of I6, for processes that are started again and compete
	// for few processors.
	Slack time.Duration

	OtherFlag string   // the value of --other, for the command that repeats the run; empty: Other
	Builds    []string // descriptions of the two builds, for the report; empty: the output of their command "version"
	// Drifting is a build of package skewedclock. Then clocks run at different rates, within the
	// drift bound, and wall clocks are set. Empty: there is none.
	Drifting string
	// Beyond has clocks run at rates beyond the bound. Then keys may have two owners, and what follows
	// from that is excused: but no fence accepts an older token, and owners must notice.
	Beyond bool
	Points []string // the failpoints of the program, which is built with them then

	// Soak spares one process of each role, so that it lives long, and fails if the memory, goroutines
	// or descriptors of any process grow with time.
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
	// roundTrip is that of I6: a message and its answer, with the commit in between, the backoff if
	// messages cross, and the poll of a standby.
	roundTrip = 500 * time.Millisecond
)

// Validate reports what is wrong, in the words of the command's flags.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("", leasehold.ErrInvalid, "", format, args...)
	}
	switch {
	case !slices.Contains(cluster.Shapes(), c.Shape):
		return bad("--store %q: want etcd, external, flease or all", c.Shape)
	case c.For < 0:
		return bad("--for %v: want a time above 0", c.For)
	case c.Faults < 0:
		return bad("--faults %d: want a number above 0", c.Faults)
	case c.For == 0 && c.Faults == 0:
		return bad("--for %v and --faults %d: one of them must say when it is enough", c.For, c.Faults)
	case c.Owners < 1 || c.Owners > 100:
		return bad("--owners %d: want 1 to 100", c.Owners)
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
		return bad("--dir %s: want a directory that is empty or does not exist: what is in it in the end is removed", c.Dir)
	}
	return c.validateKinds()
}

// validateKinds finds kinds of faults that there are not, or not here.
func (c *Config) validateKinds() error {
	all, here := nemesis.All(), nemesis.Kinds(c.setting())
	for _, name := range c.Kinds {
		at := slices.IndexFunc(all, func(f nemesis.Fault) bool { return f.Name == name })
		switch {
		case at < 0:
			return leasehold.Errorf("", leasehold.ErrInvalid, "", "--kinds %s: there is no such fault; --kinds help says which there are", name)
		case !slices.Contains(here, name):
			return leasehold.Errorf("", leasehold.ErrInvalid, "", "--kinds %s: it takes %s", name, all[at].Takes)
		}
	}
	return nil
}

// vacant reports whether a directory is empty or does not exist: a run removes all of it.
func vacant(dir string) bool {
	found, err := os.ReadDir(dir)
	return dir == "" || os.IsNotExist(err) || err == nil && len(found) == 0
}

func stretch(d time.Duration) time.Duration { return time.Duration(float64(d) * cluster.Drift) }

// setting is what can be done, and by which times it is long or short.
func (c *Config) setting() nemesis.Setting {
	return nemesis.Setting{
		Shape: c.Shape, Other: c.Other != "", Drift: c.Drifting != "", Beyond: c.Beyond, Points: len(c.Points) > 0, Spare: c.Soak,
		Times: nemesis.Times{Lease: c.Lease, Hold: stretch(c.Lease), TTL: c.TTL, Yield: stretch(c.TTL)},
	}
}

// bound is B of I6: (leader TTL + lease) x drift + 2 round trips.
//
// It is not enough for managers without a store if most of them have lost their memory. Then the
// leases that were granted are unknown: the leader waits for the longest lease that the group
// allows (--longest-lease, here lease x drift) before it asks owners for theirs. To ask takes
// lease x drift itself, if one of them has died: that is the lease of I6; and that restarted
// members do not vote for leader TTL x drift is its TTL.
func (c *Config) bound(forgot bool) time.Duration {
	b := stretch(c.TTL+c.Lease) + 2*roundTrip
	if forgot {
		b += stretch(c.Lease)
	}
	return b
}

// Replay is the command that repeats a run.
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
