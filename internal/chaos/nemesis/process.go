package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
	"github.com/leasehold-dev/leasehold/internal/chaos/skewedclock"
)

// A choice is those of a cluster to whom something may be done, the first of them
// first.
type choice func(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member

// among begins with the one that the strike picks.
func among(s Strike, members []*cluster.Member) []*cluster.Member {
	var order []*cluster.Member
	for i := range members {
		order = append(order, members[(int(s.Pick%uint64(len(members)))+i)%len(members)])
	}
	return order
}

func anyOwner(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, n.Cluster.Owners)
}

func anyManager(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, n.Cluster.Managers)
}

func anyCaller(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, n.Cluster.Callers)
}

func anyStore(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, n.Cluster.Stores)
}

// leader is the one that leads, or if nobody does somebody who may.
func leader(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
	m, err := n.Cluster.Leader(ctx)
	if err != nil {
		return among(s, n.Cluster.Managers)
	}
	return []*cluster.Member{m}
}

// storeLeader is the store that leads the others, or if none does one that may.
func storeLeader(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
	m, err := n.Cluster.StoreLeader(ctx)
	if err != nil {
		return among(s, n.Cluster.Stores)
	}
	return []*cluster.Member{m}
}

// ours is whoever follows the rules of time: managers and owners.
func ours(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, slices.Concat(n.Cluster.Owners, n.Cluster.Managers))
}

func anybody(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, n.Cluster.All())
}

func managers(c *cluster.Cluster) []*cluster.Member { return c.Managers }
func stores(c *cluster.Cluster) []*cluster.Member   { return c.Stores }

// mortal leaves out those whose processes are not to be ended.
func mortal(whom choice) choice {
	return func(ctx context.Context, n *Nemesis, s Strike) []*cluster.Member {
		return slices.DeleteFunc(whom(ctx, n, s), func(m *cluster.Member) bool { return m.Spared })
	}
}

// claim takes the first so many of a choice that nobody else has; all or none.
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

// each does something to all, and returns the first error.
func each(members []*cluster.Member, do func(*cluster.Member) error) error {
	var failed error
	for _, m := range members {
		failed = errors.Join(failed, do(m))
	}
	return failed
}

// process is a deed that hurts the processes of so many members, and helps them again.
func process(whom choice, n int, hurt, help func(*cluster.Member) error) deed {
	return processBy(whom, n, func(_ Strike, m *cluster.Member) error { return hurt(m) }, help)
}

// processBy is the same where the strike says how.
func processBy(whom choice, n int, hurt func(Strike, *cluster.Member) error, help func(*cluster.Member) error) deed {
	return func(ctx context.Context, nemesis *Nemesis, s Strike) (string, func() error, error) {
		victims := claim(whom(ctx, nemesis, s), n)
		if victims == nil {
			return "", nil, nil
		}
		err := each(victims, func(m *cluster.Member) error { return hurt(s, m) })
		return names(victims), func() error {
			defer release(victims)
			return each(victims, help)
		}, err
	}
}

// kill is kill -9, and a start later.
func kill(whom choice) deed {
	return process(mortal(whom), 1, killed, (*cluster.Member).Start)
}

func killed(m *cluster.Member) error {
	m.Kill()
	return nil
}

// pause is SIGSTOP, and SIGCONT later.
func pause(whom choice) deed {
	return process(whom, 1, (*cluster.Member).Pause, (*cluster.Member).Resume)
}

func two(of func(*cluster.Cluster) []*cluster.Member) choice {
	return func(_ context.Context, n *Nemesis, s Strike) []*cluster.Member { return among(s, of(n.Cluster)) }
}

func killTwo(of func(*cluster.Cluster) []*cluster.Member) deed {
	return process(mortal(two(of)), 2, killed, (*cluster.Member).Start)
}

// killHalf kills half of those whom nobody else has.
func killHalf(whom choice) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		all := len(mortal(whom)(ctx, n, s))
		for some := (all + 1) / 2; some > 1; some-- {
			if victims, heal, err := process(mortal(whom), some, killed, (*cluster.Member).Start)(ctx, n, s); victims != "" {
				return victims, heal, err
			}
		}
		return "", nil, nil
	}
}

func pauseTwo(of func(*cluster.Cluster) []*cluster.Member) deed {
	return process(two(of), 2, (*cluster.Member).Pause, (*cluster.Member).Resume)
}

// restart is SIGTERM, and a start later.
func restart(whom choice) deed {
	return process(mortal(whom), 1, (*cluster.Member).End, (*cluster.Member).Start)
}

// upgrade is a restart as another build, or as the one before.
func upgrade(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	return process(mortal(anybody), 1, func(m *cluster.Member) error {
		m.Become()
		return m.End()
	}, (*cluster.Member).Start)(ctx, n, s)
}

// shift kills a process and starts it with a monotonic clock that is up to a day ahead: what
// one process's clock shows means nothing to another.
func shift(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	return processBy(mortal(ours), 1, func(s Strike, m *cluster.Member) error {
		m.Kill()
		m.Configure(func(o *cluster.Options) { o.Offset = time.Duration(s.How * float64(24*time.Hour)) })
		return nil
	}, (*cluster.Member).Start)(ctx, n, s)
}

// set kills a process, and starts another whose wall clock is set by up to an hour a moment
// later, either way, and is right again when the strike is over.
func set(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	return processBy(mortal(ours), 1, func(s Strike, m *cluster.Member) error {
		m.Kill()
		by := time.Duration((2*s.How - 1) * float64(time.Hour))
		m.Configure(func(o *cluster.Options) { o.Once = append(o.Once, skewedclock.Wall(by, s.For/4, s.For)) })
		return m.Start()
	}, func(*cluster.Member) error { return nil })(ctx, n, s)
}

// stray kills so many processes, and starts others whose clocks keep no bound: those of
// managers are so fast, and those of owners so slow, that leases are given to others before
// they end. Then they are as they should be.
func stray(whom choice, n int) deed {
	return processBy(mortal(whom), n, func(s Strike, m *cluster.Member) error {
		rate := 1.4 + 0.8*s.How
		if m.Role == cluster.Owner {
			rate = 1 / rate
		}
		m.Kill()
		m.Configure(func(o *cluster.Options) { o.Rate = rate })
		return m.Start()
	}, func(m *cluster.Member) error {
		m.Kill()
		m.Configure(func(o *cluster.Options) { o.Rate = 1 })
		return m.Start()
	})
}

// The rates of clocks. The fastest and the slowest are as far apart as the drift bound of
// 1.2 allows.
const (
	slowest = 0.92
	fastest = 1.10
)

// drift kills a process and starts it with a clock that runs at another rate.
func drift(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	return processBy(mortal(ours), 1, func(s Strike, m *cluster.Member) error {
		m.Kill()
		m.Configure(func(o *cluster.Options) { o.Rate = slowest + (fastest-slowest)*s.How })
		return nil
	}, (*cluster.Member).Start)(ctx, n, s)
}

func keepers(_ context.Context, n *Nemesis, s Strike) []*cluster.Member {
	return among(s, n.Cluster.Keepers())
}

// fill leaves no room on the disk of somebody who keeps the tables. A store that cannot write
// its log ends, and is started again, and ends, until there is room.
func fill(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	return process(mortal(keepers), 1,
		func(m *cluster.Member) error {
			m.Excuse(true)
			return m.Fill()
		}, func(m *cluster.Member) error {
			err := m.Empty()
			m.Excuse(false)
			return err
		})(ctx, n, s)
}

// stutter stops a process again and again for moments. It stands for a disk that is slow to
// sync, among others: whoever waits for it waits.
func stutter(whom choice) deed {
	return func(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
		victims := claim(whom(ctx, n, s), 1)
		if victims == nil {
			return "", nil, nil
		}
		m := victims[0]
		ctx, stop := context.WithCancel(ctx)
		stuttered := make(chan error, 1)
		go func() {
			stuttered <- stopAndGo(ctx, m, 20*time.Millisecond+time.Duration(s.How*float64(300*time.Millisecond)))
		}()
		return m.Name, func() error {
			defer release(victims)
			stop()
			return <-stuttered
		}, nil
	}
}

func stopAndGo(ctx context.Context, m *cluster.Member, still time.Duration) error {
	const goes = 20 * time.Millisecond
	for {
		if err := m.Pause(); err != nil {
			return err
		}
		wait(ctx, still)
		if err := m.Resume(); err != nil || !wait(ctx, goes) {
			return err
		}
	}
}
