package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/skewedclock"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A choice returns the members that a fault may strike, in order of preference.
type choice func(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member

// among returns the members in order, beginning with the one that the strike picks.
func among(s Strike, members []*cluster.Member) []*cluster.Member {
	if len(members) == 0 {
		return nil
	}
	at := s.Pick % uint64(len(members))
	return slices.Concat(members[at:], members[:at])
}

func anyOf(group func(*cluster.Cluster) []*cluster.Member) choice {
	return func(_ context.Context, n *Nemesis, s Strike) []*cluster.Member { return among(s, group(n.Cluster)) }
}

var (
	anyOwner   = anyOf(func(c *cluster.Cluster) []*cluster.Member { return c.Owners })
	anyManager = anyOf(func(c *cluster.Cluster) []*cluster.Member { return c.Managers })
	anyCaller  = anyOf(func(c *cluster.Cluster) []*cluster.Member { return c.Callers })
	anyStore   = anyOf(func(c *cluster.Cluster) []*cluster.Member { return c.Stores })
	anyMember  = anyOf((*cluster.Cluster).All)
	anyKeeper  = anyOf((*cluster.Cluster).Keepers)
	// anyTimed chooses a member that measures leases.
	anyTimed = anyOf(func(c *cluster.Cluster) []*cluster.Member { return slices.Concat(c.Owners, c.Managers) })
)

// leader chooses the leader, or any manager without a leader.
func leader(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
	if m, err := n.Cluster.Leader(ctx); err == nil {
		return []*cluster.Member{m}
	}
	return anyManager(ctx, n, s)
}

// storeLeader chooses the leader of the stores, or any store without a leader.
func storeLeader(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
	if m, err := n.Cluster.StoreLeader(ctx); err == nil {
		return []*cluster.Member{m}
	}
	return anyStore(ctx, n, s)
}

// mortal excludes members whose processes must not be ended.
func mortal(whom choice) choice {
	return func(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
		return slices.DeleteFunc(whom(ctx, n, s), func(m *cluster.Member) bool { return m.Spared })
	}
}

// claim claims the first n free members of a choice; all n or none.
func claim(from []*cluster.Member, n int) []*cluster.Member {
	var claimed []*cluster.Member
	for _, m := range from {
		if len(claimed) < n && m.Claim() {
			claimed = append(claimed, m)
		}
	}
	if len(claimed) < n {
		release(claimed)
		return nil
	}
	return claimed
}

func release(members []*cluster.Member) {
	for _, m := range members {
		m.Release()
	}
}

func names(members []*cluster.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.Name)
	}
	return strings.Join(all, " ")
}

// all, as a number of members, is all members of a choice.
const all = 0

// process injects a fault into the processes of n members, and heals it.
func process(n int, whom choice, hurt func(Strike, *cluster.Member) error, heal func(*cluster.Member) error) deed {
	return func(ctx context.Context, nemesis *Nemesis, s Strike) (string, func() error, error) {
		possible, want := whom(ctx, nemesis, s), n
		if want == all {
			want = len(possible)
		}
		victims := claim(possible, want)
		if len(victims) == 0 {
			return "", nil, nil
		}
		err := each(victims, func(m *cluster.Member) error { return hurt(s, m) })
		return names(victims), func() error {
			defer release(victims)
			return each(victims, heal)
		}, err
	}
}

func each(members []*cluster.Member, do func(*cluster.Member) error) (failed error) {
	for _, m := range members {
		failed = errors.Join(failed, do(m))
	}
	return failed
}

// kill sends SIGKILL, and restarts the processes later.
func kill(n int, whom choice) deed {
	return process(n, mortal(whom), func(_ Strike, m *cluster.Member) error {
		m.Kill()
		return nil
	}, (*cluster.Member).Start)
}

// pause sends SIGSTOP, and SIGCONT later.
func pause(n int, whom choice) deed {
	return process(n, whom, func(_ Strike, m *cluster.Member) error { return m.Pause() }, (*cluster.Member).Resume)
}

// restart sends SIGTERM, and restarts the process later.
func restart(whom choice) deed {
	return process(1, mortal(whom), func(_ Strike, m *cluster.Member) error { return m.End() }, (*cluster.Member).Start)
}

// killHalf kills half of the members, or fewer if not enough are free.
func killHalf(whom choice) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		count := len(mortal(whom)(ctx, n, s))
		for some := (count + 1) / 2; some > 1; some-- {
			if victims, heal, err := kill(some, whom)(ctx, n, s); victims != "" {
				return victims, heal, err
			}
		}
		return "", nil, nil
	}
}

// upgrade restarts a process as the other build.
func upgrade() deed {
	return process(1, mortal(anyMember), func(_ Strike, m *cluster.Member) error {
		m.Become()
		return m.End()
	}, (*cluster.Member).Start)
}

type revision func(s Strike, m *cluster.Member, o *cluster.Options)

// kill kills a process, and changes the options of the next one.
func (change revision) kill(s Strike, m *cluster.Member) error {
	m.Kill()
	m.Configure(func(o *cluster.Options) { change(s, m, o) })
	return nil
}

// revise kills a process, and starts one with changed options when the strike is over.
func revise(change revision) deed {
	return process(1, mortal(anyTimed), change.kill, (*cluster.Member).Start)
}

// replace kills processes and starts ones with changed options at once.
func replace(n int, whom choice, change revision, heal func(*cluster.Member) error) deed {
	return process(n, mortal(whom), func(s Strike, m *cluster.Member) error {
		return errors.Join(change.kill(s, m), m.Start())
	}, heal)
}

func killAndStart(m *cluster.Member) error {
	m.Kill()
	return m.Start()
}

// shiftClock sets a monotonic clock up to a day ahead: clocks of different processes are not comparable.
func shiftClock(s Strike, _ *cluster.Member, o *cluster.Options) {
	o.Offset = time.Duration(s.How * float64(24*time.Hour))
}

// The ratio of the rates of clocks is within the drift bound of 1.2.
const (
	slowest = 0.92
	fastest = 1.10
)

// rateClock changes the rate of a clock.
func rateClock(s Strike, _ *cluster.Member, o *cluster.Options) {
	o.Rate = slowest + (fastest-slowest)*s.How
}

// setClock starts a process whose wall clock is set by up to an hour until the strike is over.
func setClock() deed {
	return replace(1, anyTimed, func(s Strike, _ *cluster.Member, o *cluster.Options) {
		by := time.Duration((2*s.How - 1) * float64(time.Hour))
		o.Once = append(o.Once, skewedclock.Wall(by, s.For/4, s.For))
	}, func(*cluster.Member) error { return nil })
}

// stray breaks the drift bound: clocks of managers are so fast, and those of owners so slow, that leases are
// granted again before they expire on the owner's clock.
func stray(n int, whom choice) deed {
	return replace(n, whom, func(s Strike, m *cluster.Member, o *cluster.Options) {
		o.Rate = 1.4 + 0.8*s.How
		if m.Role == cluster.Owner {
			o.Rate = 1 / o.Rate
		}
	}, func(m *cluster.Member) error {
		m.Configure(func(o *cluster.Options) { o.Rate = 1 })
		return killAndStart(m)
	})
}

// stutter stops and continues a process repeatedly, like a slow disk does.
func stutter(whom choice) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		victims := claim(whom(ctx, n, s), 1)
		if victims == nil {
			return "", nil, nil
		}
		m := victims[0]
		stop := until(ctx, func(ctx context.Context) error {
			return stopAndGo(ctx, m, 20*time.Millisecond+time.Duration(s.How*float64(300*time.Millisecond)))
		})
		return m.Name, func() error {
			defer release(victims)
			return stop()
		}, nil
	}
}

func stopAndGo(ctx context.Context, m *cluster.Member, still time.Duration) error {
	const goes = 20 * time.Millisecond
	for {
		if err := m.Pause(); err != nil {
			return err
		}
		proc.Pause(ctx, still)
		if err := m.Resume(); err != nil || !proc.Pause(ctx, goes) {
			return err
		}
	}
}
