package nemesis

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// A kind is a kind of fault.
type kind struct {
	name   string
	text   string   // description
	weight int      // relative frequency
	when   []demand // requirements; nil: none
	lasts  span
	do     deed
}

// A demand is a requirement of a kind, in terms of the command's flags.
type demand struct {
	flags string
	met   func(Setting) bool
}

func (k *kind) in(s Setting) bool {
	return !slices.ContainsFunc(k.when, func(d demand) bool { return !d.met(s) })
}

func (k *kind) takes() string {
	var flags []string
	for _, d := range k.when {
		flags = append(flags, d.flags)
	}
	return strings.Join(flags, " and ")
}

var (
	stored   = demand{"--store etcd or external", func(s Setting) bool { return s.Shape.Stored() }}
	embedded = demand{"--store etcd or flease", func(s Setting) bool { return s.Shape == cluster.Etcd || s.Shape == cluster.Flease }}
	separate = demand{"managers in processes of their own", func(s Setting) bool { return s.Shape != cluster.Embedded }}
	external = demand{"--store external", func(s Setting) bool { return s.Shape == cluster.External }}
	another  = demand{"--other", func(s Setting) bool { return s.Other }}
	drifts   = demand{"--drift", func(s Setting) bool { return s.Drift && !s.Beyond }}
	strays   = demand{"--drift=beyond", func(s Setting) bool { return s.Drift && s.Beyond }}
	wrong    = demand{"--drift or --drift=beyond", func(s Setting) bool { return s.Drift }}
	points   = demand{"--failpoints", func(s Setting) bool { return s.Points }}
	bounded  = demand{"clocks within the drift bound", func(s Setting) bool { return !s.Beyond }}
	unspared = demand{"a run without --soak", func(s Setting) bool { return !s.Spare }}
)

// A deed injects a fault, and returns the victims, and the function that ends the fault. Victims is empty if
// there is no possible victim now.
type deed func(ctx context.Context, n *Nemesis, s Strike) (victims string, heal func() error, err error)

// A span is the duration of a strike, for a random number from 0 to 1.
type span func(t Times, drawn float64) time.Duration

func between(least, most time.Duration, drawn float64) time.Duration {
	return least + time.Duration(drawn*float64(most-least))
}

// The usual spans: too short for a lease to expire; long enough that leases expire and are granted to others;
// and in between. longer is enough for the next leader to wait for all leases, so that a leader that still
// renews would do harm.
func short(t Times, drawn float64) time.Duration   { return between(t.Lease/10, t.Lease/2, drawn) }
func long(t Times, drawn float64) time.Duration    { return between(t.Hold*6/5, t.Hold*3/2, drawn) }
func some(t Times, drawn float64) time.Duration    { return between(t.Lease/5, t.Hold*6/5, drawn) }
func instant(t Times, drawn float64) time.Duration { return between(t.TTL/20, t.TTL/2, drawn) }
func reign(t Times, drawn float64) time.Duration   { return between(t.Yield*6/5, 2*t.Yield, drawn) }
func longer(t Times, drawn float64) time.Duration  { return between(2*t.Hold, 3*t.Hold, drawn) }

// CallerCut isolates a caller for longer than its stale time.
const CallerCut = "caller-cut"

// kinds returns the kinds of faults in storms.
func kinds() []kind {
	return []kind{
		{"owner-kill", "a server is killed with -9, and restarted", 4, nil, some, kill(1, anyOwner)},
		{"owners-kill", "half of all servers are killed with -9 at once, and restarted", 1, nil, some, killHalf(anyOwner)},
		{"owner-restart", "a server is terminated (SIGTERM), and restarted", 2, nil, short, restart(anyOwner)},
		{"owner-pause-short", "a server is stopped (SIGSTOP) for less than its lease", 3, nil, short, pause(1, anyOwner)},
		{"owner-pause-long", "a server is stopped for longer than its lease", 4, nil, long, pause(1, anyOwner)},
		{"owner-stutter", "a server is stopped and continued repeatedly, like on a loaded processor", 2, nil, some, stutter(anyOwner)},
		{"manager-kill", "a manager is killed with -9, and restarted", 2, nil, some, kill(1, anyManager)},
		{"manager-pause", "a manager is stopped", 2, nil, some, pause(1, anyManager)},
		{"leader-kill", "the leader is killed with -9, and restarted", 3, nil, some, kill(1, leader)},
		{"leader-restart", "the leader is terminated, and restarted", 1, nil, short, restart(leader)},
		{"leader-pause-short", "the leader is stopped for less than its TTL", 2, nil, instant, pause(1, leader)},
		{"leader-pause-long", "the leader is stopped for longer than its TTL", 3, nil, reign, pause(1, leader)},
		{"caller-kill", "a caller is killed with -9, and restarted", 1, nil, short, kill(1, anyCaller)},
		{"upgrade", "a process is restarted as the other build, or as this one again", 4, []demand{another}, instant, upgrade()},
		{"clock-offset", "a process is restarted with a monotonic clock that is up to a day ahead", 2, nil, instant, revise(shiftClock)},
		{"clock-rate", "a process is restarted with a clock at another rate, within the drift bound", 6, []demand{drifts}, instant, revise(rateClock)},
		{"owner-clock-beyond", "a server is restarted with a clock that is slower than the bound allows", 20, []demand{strays}, longer, stray(1, anyOwner)},
		{"manager-clocks-beyond", "all managers are restarted with clocks that are faster than that", 4, []demand{strays, stored}, longer, stray(3, anyManager)},
		{"wall-clock", "the wall clock of a process is set, by up to an hour, and corrected again", 4, []demand{wrong}, long, setClock()},
		{"failpoint", "a process exits, or is stopped, at a failpoint", 20, []demand{points}, some, fail},
		{"memory", "the memory of a process is limited to little more than it uses", 2, nil, some, starve()},
		{"disk-full", "the disk of a member that stores the tables is full", 3, []demand{stored}, some, fill()},
		{"connection-storm", "many connections to a manager send nothing, or garbage", 2, nil, some, flood},
		{"store-leader-kill", "the store's leader is killed with -9, and restarted", 2, []demand{external}, some, kill(1, storeLeader)},
		{"store-leader-cut", "the store's leader is cut off from all others", 2, []demand{external}, some, trouble(cut(storeLeader))},
		{"store-stutter", "a store is stopped and continued repeatedly, as with a slow disk", 2, []demand{external}, some, stutter(anyStore)},
		{"manager-stutter", "a manager is stopped and continued repeatedly", 2, nil, some, stutter(anyManager)},
		{"store-kill", "a store is killed with -9, and restarted", 2, []demand{external}, some, kill(1, anyStore)},
		{"store-pause", "a store is stopped", 3, []demand{external}, some, pause(1, anyStore)},
		{"quorum-kill", "two of three managers are killed with -9 at once", 1, []demand{embedded}, some, kill(2, anyManager)},
		{"store-quorum-kill", "two of three stores are killed with -9 at once", 1, []demand{external}, some, kill(2, anyStore)},
		{"store-quorum-pause", "two of three stores are stopped at once", 2, []demand{external}, some, pause(2, anyStore)},
		{"quorum-pause", "two of three managers are stopped at once", 1, []demand{stored}, some, pause(2, anyManager)},
		{"owner-cut", "a server is cut off from all others", 3, nil, some, trouble(cut(anyOwner))},
		{"owner-deaf", "a server receives no packets, but sends", 3, nil, some, trouble(deaf(anyOwner))},
		{"owner-mute", "a server sends no packets, but receives", 3, nil, some, trouble(mute(anyOwner))},
		{"leader-alone", "the leader is cut off from all others", 3, nil, some, trouble(cut(leader))},
		{"leader-deaf", "the leader receives no packets, but sends", 2, nil, some, trouble(deaf(leader))},
		{"leader-mute", "the leader sends no packets, but receives", 2, nil, some, trouble(mute(leader))},
		{"manager-minority", "a manager is cut off from the other managers and the stores, not from servers", 2, nil, some, trouble(minority(anyManager))},
		{"leader-minority", "the leader is cut off in the same way, for longer than the next leader waits", 3, nil, longer, single(trouble(minority(leader)))},
		{"halves", "the network is partitioned into two halves", 2, nil, some, trouble(halves)},
		{"owners-callers-cut", "servers and callers do not reach each other", 1, nil, some, trouble(apart)},
		{CallerCut, "a caller is cut off from all others", 1, nil, long, trouble(cut(anyCaller))},
		{"store-cut", "a store is cut off from all others", 2, []demand{external}, some, trouble(cut(anyStore))},
		{"flapping", "a manager is cut off and reconnected repeatedly", 2, nil, some, flap(cut(anyManager))},
		{"leader-flapping", "the leader is cut off and reconnected repeatedly", 2, nil, some, flap(cut(leader))},
		{"delay", "packets are delayed by up to 100 ms, at one host or everywhere", 2, nil, some, trouble(degrade(slow))},
		{"loss", "1 to 50 % of packets are lost, at one host or everywhere", 3, nil, some, trouble(degrade(lossy))},
		{"reorder", "packets are reordered, at one host or everywhere", 2, nil, some, trouble(degrade(reordering))},
		{"duplicate", "packets are duplicated, at one host or everywhere", 2, nil, some, trouble(degrade(duplicating))},
		{"bandwidth", "the bandwidth is 10 to 100 kB per second, at one host or everywhere", 1, nil, some, trouble(degrade(narrow))},
	}
}
