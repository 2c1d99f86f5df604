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
	text   string   // what happens
	weight int      // how often it comes, relative to others
	when   []demand // what it takes; nil: nothing
	lasts  span
	do     deed
}

// A demand is what a kind takes to be done, in the words of the command's flags.
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
	stored   = demand{"--store etcd or external", func(s Setting) bool { return s.Shape != cluster.Flease }}
	embedded = demand{"--store etcd or flease", func(s Setting) bool { return s.Shape != cluster.External }}
	external = demand{"--store external", func(s Setting) bool { return s.Shape == cluster.External }}
	another  = demand{"--other", func(s Setting) bool { return s.Other }}
	drifts   = demand{"--drift", func(s Setting) bool { return s.Drift && !s.Beyond }}
	strays   = demand{"--drift=beyond", func(s Setting) bool { return s.Drift && s.Beyond }}
	wrong    = demand{"--drift or --drift=beyond", func(s Setting) bool { return s.Drift }}
	points   = demand{"--failpoints", func(s Setting) bool { return s.Points }}
	bounded  = demand{"clocks within the drift bound", func(s Setting) bool { return !s.Beyond }}
	unspared = demand{"a run without --soak", func(s Setting) bool { return !s.Spare }}
)

// A deed does something to a cluster, and returns to whom, and what undoes it. Victims is empty
// if there is no process to which it can be done now.
type deed func(ctx context.Context, n *Nemesis, s Strike) (victims string, heal func() error, err error)

// A span says how long a strike lasts. It is drawn with a number from 0 to 1.
type span func(t Times, drawn float64) time.Duration

func between(least, most time.Duration, drawn float64) time.Duration {
	return least + time.Duration(drawn*float64(most-least))
}

// The usual spans: too short for a lease to end, long enough that leases have ended and are
// granted to others, and anything in between. Longer is enough for a successor of the leader
// that has waited for all leases: a leader that renews until then does harm.
func short(t Times, drawn float64) time.Duration   { return between(t.Lease/10, t.Lease/2, drawn) }
func long(t Times, drawn float64) time.Duration    { return between(t.Hold*6/5, t.Hold*3/2, drawn) }
func some(t Times, drawn float64) time.Duration    { return between(t.Lease/5, t.Hold*6/5, drawn) }
func instant(t Times, drawn float64) time.Duration { return between(t.TTL/20, t.TTL/2, drawn) }
func reign(t Times, drawn float64) time.Duration   { return between(t.Yield*6/5, 2*t.Yield, drawn) }
func longer(t Times, drawn float64) time.Duration  { return between(2*t.Hold, 3*t.Hold, drawn) }

// CallerCut isolates a caller for longer than its stale time.
const CallerCut = "caller-cut"

// kinds are those that storms consist of.
func kinds() []kind {
	return []kind{
		{"owner-kill", "a server is killed with -9, and started again", 4, nil, some, kill(1, anyOwner)},
		{"owners-kill", "half of all servers are killed with -9 at once, and started again", 1, nil, some, killHalf(anyOwner)},
		{"owner-restart", "a server is asked to end (SIGTERM), and started again", 2, nil, short, restart(anyOwner)},
		{"owner-pause-short", "a server stands still (SIGSTOP) for less than its lease", 3, nil, short, pause(1, anyOwner)},
		{"owner-pause-long", "a server stands still for longer than its lease", 4, nil, long, pause(1, anyOwner)},
		{"owner-stutter", "a server stops and goes, as if it got too little of a processor", 2, nil, some, stutter(anyOwner)},
		{"manager-kill", "a manager is killed with -9, and started again", 2, nil, some, kill(1, anyManager)},
		{"manager-pause", "a manager stands still", 2, nil, some, pause(1, anyManager)},
		{"leader-kill", "the manager that leads is killed with -9, and started again", 3, nil, some, kill(1, leader)},
		{"leader-restart", "the manager that leads is asked to end, and started again", 1, nil, short, restart(leader)},
		{"leader-pause-short", "the manager that leads stands still for less than its TTL", 2, nil, instant, pause(1, leader)},
		{"leader-pause-long", "the manager that leads stands still for longer than its TTL", 3, nil, reign, pause(1, leader)},
		{"caller-kill", "a caller is killed with -9, and started again", 1, nil, short, kill(1, anyCaller)},
		{"upgrade", "a process is restarted as the other build, or as this one again", 4, []demand{another}, instant, upgrade()},
		{"clock-offset", "a process is restarted with a monotonic clock that is up to a day ahead", 2, nil, instant, revise(shiftClock)},
		{"clock-rate", "a process is restarted with a clock at another rate, within the drift bound", 6, []demand{drifts}, instant, revise(rateClock)},
		{"owner-clock-beyond", "a server is restarted with a clock that is slower than the bound allows", 20, []demand{strays}, longer, stray(1, anyOwner)},
		{"manager-clocks-beyond", "all managers are restarted with clocks that are faster than that", 4, []demand{strays, stored}, longer, stray(3, anyManager)},
		{"wall-clock", "the wall clock of a process is set, by up to an hour, and set right again", 4, []demand{wrong}, long, setClock()},
		{"failpoint", "a process dies, or stands still, at a failpoint", 20, []demand{points}, some, fail},
		{"memory", "a process gets hardly more memory than it has", 2, nil, some, starve()},
		{"disk-full", "the disk of somebody who keeps the tables is full", 3, []demand{stored}, some, fill()},
		{"connection-storm", "many connect to a manager, and say nothing, or nonsense", 2, nil, some, flood},
		{"store-leader-kill", "the store's leader is killed with -9, and started again", 2, []demand{external}, some, kill(1, storeLeader)},
		{"store-leader-cut", "the store's leader is cut off from everybody", 2, []demand{external}, some, trouble(cut(storeLeader))},
		{"store-stutter", "a store stops and goes, as if its disk were slow to sync", 2, []demand{external}, some, stutter(anyStore)},
		{"manager-stutter", "a manager stops and goes", 2, nil, some, stutter(anyManager)},
		{"store-kill", "a store is killed with -9, and started again", 2, []demand{external}, some, kill(1, anyStore)},
		{"store-pause", "a store stands still", 3, []demand{external}, some, pause(1, anyStore)},
		{"quorum-kill", "two of three managers are killed with -9 at once", 1, []demand{embedded}, some, kill(2, anyManager)},
		{"store-quorum-kill", "two of three stores are killed with -9 at once", 1, []demand{external}, some, kill(2, anyStore)},
		{"store-quorum-pause", "two of three stores stand still at once", 2, []demand{external}, some, pause(2, anyStore)},
		{"quorum-pause", "two of three managers stand still at once", 1, []demand{stored}, some, pause(2, anyManager)},
		{"owner-cut", "a server is cut off from everybody", 3, nil, some, trouble(cut(anyOwner))},
		{"owner-deaf", "nothing reaches a server, which reaches others", 3, nil, some, trouble(deaf(anyOwner))},
		{"owner-mute", "a server reaches nobody, and hears others", 3, nil, some, trouble(mute(anyOwner))},
		{"leader-alone", "the manager that leads is cut off from everybody", 3, nil, some, trouble(cut(leader))},
		{"leader-deaf", "nothing reaches the manager that leads, which reaches others", 2, nil, some, trouble(deaf(leader))},
		{"leader-mute", "the manager that leads reaches nobody, and hears others", 2, nil, some, trouble(mute(leader))},
		{"manager-minority", "a manager is cut off from the others and from stores, not from servers", 2, nil, some, trouble(minority(anyManager))},
		{"leader-minority", "the manager that leads is so for longer than its successor waits", 3, nil, longer, single(trouble(minority(leader)))},
		{"halves", "the network falls into two halves", 2, nil, some, trouble(halves)},
		{"owners-callers-cut", "servers and callers do not reach each other", 1, nil, some, trouble(apart)},
		{CallerCut, "a caller is cut off from everybody", 1, nil, long, trouble(cut(anyCaller))},
		{"store-cut", "a store is cut off from everybody", 2, []demand{external}, some, trouble(cut(anyStore))},
		{"flapping", "a manager is cut off and back, again and again", 2, nil, some, flap(cut(anyManager))},
		{"leader-flapping", "the manager that leads is cut off and back, again and again", 2, nil, some, flap(cut(leader))},
		{"delay", "packets are late, by up to 100 ms, at one host or everywhere", 2, nil, some, trouble(degrade(slow))},
		{"loss", "1 to 50 % of packets are lost, at one host or everywhere", 3, nil, some, trouble(degrade(lossy))},
		{"reorder", "packets overtake each other, at one host or everywhere", 2, nil, some, trouble(degrade(reordering))},
		{"duplicate", "packets arrive twice, at one host or everywhere", 2, nil, some, trouble(degrade(duplicating))},
		{"bandwidth", "10 to 100 kB pass in a second, at one host or everywhere", 1, nil, some, trouble(degrade(narrow))},
	}
}
