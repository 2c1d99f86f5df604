package nemesis

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// An outage is a fault of managers, store or network, but not of an owner. It is a storm of one fault and
// begins in a quiet cluster, so that the outage is the cause of every loss (I11).

// Kinds of outages with specific checks.
const (
	ManagersKill  = "managers-kill"
	ManagersPause = "managers-pause"
	ManagersCut   = "managers-cut"
	StoreRestore  = "store-restore"
)

// Durations of outages, unless the run ends before.
const (
	ShortestOutage = 5 * time.Second
	longestOutage  = 5 * time.Minute
)

// outageTime is mostly short: half of all outages take less than 9 s, one in ten more than 99 s.
func outageTime(_ Times, drawn float64) time.Duration {
	factor := math.Pow(float64(longestOutage)/float64(ShortestOutage), drawn*drawn*drawn)
	return time.Duration(float64(ShortestOutage) * factor)
}

// outages returns the kinds of outages.
func outages() []kind {
	return []kind{
		{ManagersKill, "all managers are killed with -9, and restarted 5 s to 5 min later", 3, []demand{bounded, unspared}, outageTime, kill(all, anyManager)},
		{ManagersPause, "all managers are stopped (SIGSTOP) for 5 s to 5 min", 2, []demand{bounded}, outageTime, pause(all, anyManager)},
		{ManagersCut, "all managers are cut off from servers and callers for 5 s to 5 min, not from each other", 3, []demand{bounded, separate}, outageTime, trouble(unreachable)},
		{"store-outage-kill", "the store has no quorum for 5 s to 5 min: two or all of its members are killed with -9", 2, []demand{bounded, stored, unspared}, outageTime, kill(all, quorum)},
		{"store-outage-pause", "the store has no quorum for 5 s to 5 min: two or all of its members are stopped", 2, []demand{bounded, stored}, outageTime, pause(all, quorum)},
		{StoreRestore, "managers and stores are killed, and restarted with copies of their data directories that are over a minute old", 2, []demand{bounded, stored, unspared}, outageTime, restore},
	}
}

// PlanOutage draws an outage of the kinds that a setting has, or of the named ones. It prefers the least
// frequent kinds, so that a short run has many kinds. The outage lasts for exact, or if that is 0 for a
// random time of at most a third of left. It returns false if there is no such kind. A store whose copy is
// too young is restored only if there is no other kind, because the strike then waits.
func PlanOutage(random *rand.Rand, in Setting, left, exact time.Duration, named []string, struck map[string]int) (Strike, bool) {
	possible := pool(outages(), in, named)
	if others := slices.DeleteFunc(slices.Clone(possible), isRestore); !in.Copied && len(others) > 0 {
		possible = others
	}
	if len(possible) == 0 {
		return Strike{}, false
	}
	rare := slices.MinFunc(possible, func(a, b kind) int { return struck[a.name] - struck[b.name] })
	possible = slices.DeleteFunc(possible, func(k kind) bool { return struck[k.name] > struck[rare.name] })
	k := possible[random.IntN(len(possible))]
	s := Strike{Kind: k.name, Pick: random.Uint64(), How: random.Float64(), For: k.lasts(in.Times, random.Float64())}
	s.For = min(s.For, max(ShortestOutage, left/3))
	if exact > 0 {
		s.For = exact
	}
	return s, true
}

// HasOutages reports whether outages are possible in a setting, among the named kinds.
func HasOutages(in Setting, named []string) bool { return len(pool(outages(), in, named)) > 0 }

// HasStorms reports whether other faults are possible.
func HasStorms(in Setting, named []string) bool { return len(pool(kinds(), in, named)) > 0 }

// HasRestores reports whether an outage can restore the store.
func HasRestores(in Setting, named []string) bool {
	return slices.ContainsFunc(pool(outages(), in, named), isRestore)
}

func isRestore(k kind) bool { return k.name == StoreRestore }

// quorum returns enough members that store the tables to leave no quorum. For managers it never returns all:
// managers-kill and managers-pause do that.
func quorum(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	members := among(s, n.Cluster.Keepers())
	count := len(members)/2 + 1
	if len(n.Cluster.Stores) > 0 && s.How < 0.5 {
		count = len(members)
	}
	return members[:count]
}

// unreachable cuts managers off from owners and callers.
func unreachable(_ context.Context, n *Nemesis, _ Strike) (string, []lan.Way, lan.Trouble) {
	return cutBetween(names(n.Cluster.Managers), cluster.Hosts(n.Cluster.Managers), cluster.Hosts(n.Cluster.Owners, n.Cluster.Callers))
}

// restore replaces the data of the store by a copy, while no manager and no member of the store runs. The
// copy must be so old that the next leader detects the restore: see the limit in docs/operations/run.md.
func restore(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	copied := n.Cluster.CopiedAt()
	if copied.IsZero() || !proc.Pause(ctx, time.Until(copied.Add(n.CopyAge-s.For))) {
		return "", nil, nil
	}
	servers := anyOf(func(c *cluster.Cluster) []*cluster.Member { return slices.Concat(c.Stores, c.Managers) })
	victims, heal, err := kill(all, servers)(ctx, n, s)
	if victims == "" || err != nil {
		return victims, heal, err
	}
	if err := n.Cluster.Restore(); err != nil {
		return victims, nil, err
	}
	return victims, heal, nil
}

// CopyAge returns the minimum age of a copy, so that managers detect the restore. The limit is a minute, or
// 20 times the wait of a standby if that is longer, on the slowest clock of a run. A quarter more is enough
// for all clocks.
func (t Times) CopyAge() time.Duration { return 5 * max(time.Minute, 20*t.Yield) / 4 }
