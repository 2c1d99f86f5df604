package fleasebench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/secret"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// MemberConfig configures one process of a group.
type MemberConfig struct {
	Self           flease.ID
	Members        []string // addresses of all, in order
	Lease, Epsilon time.Duration
	Sealed         bool // packets are encrypted and authenticated
	TCP            bool
	GCPercent      int // 0 is the default
}

// Start starts a process for each member, and returns when all are ready.
func Start(ctx context.Context, role string, members int, c MemberConfig) (g proc.Group, err error) {
	if c.Members, err = process.FreePorts(members); err != nil {
		return nil, err
	}
	g, err = proc.StartGroup(ctx, role, members, func(i int) any {
		c.Self = flease.ID(i + 1)
		return c
	})
	if err != nil {
		return nil, err
	}
	if err := callAll(g, "Ready", nil); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// An Order is the batch that each process acquires.
type Order struct {
	Batch int    // leases
	Name  string // prefix of the resource names
}

// A Batch is the result of an acquisition. All processes have the same clock.
type Batch struct {
	Leases     int
	Begin, End time.Time
	CPU        time.Duration
}

// Took returns the time from begin to end.
func (b Batch) Took() time.Duration { return b.End.Sub(b.Begin) }

// Measure measures acquire, which returns the number of leases.
func Measure(acquire func() (int, error)) (b Batch, err error) {
	before := proc.CPUTime()
	b.Begin = time.Now()
	b.Leases, err = acquire()
	b.End, b.CPU = time.Now(), proc.CPUTime()-before
	return b, err
}

func together(all []Batch) Batch {
	sum := all[0]
	for _, b := range all[1:] {
		sum.Leases += b.Leases
		sum.CPU += b.CPU
		sum.Begin = slices.MinFunc([]time.Time{sum.Begin, b.Begin}, time.Time.Compare)
		sum.End = slices.MaxFunc([]time.Time{sum.End, b.End}, time.Time.Compare)
	}
	return sum
}

func callAll(g proc.Group, method string, args any) error {
	_, err := proc.CallAll[struct{}](g, method, args)
	return err
}

// Prepare sends an order to all processes. They create the resource names before the measurement starts.
func Prepare(g proc.Group, o Order) error { return callAll(g, "Prepare", o) }

// Acquire makes all processes acquire their batches concurrently, and returns the sum, from the first begin
// to the last end.
func Acquire(g proc.Group) (Batch, error) {
	all, err := proc.CallAll[Batch](g, "Acquire", nil)
	if err != nil {
		return Batch{}, err
	}
	b := together(all)
	if b.Leases == 0 {
		return b, errors.New("all leases were lost before the batch was complete: the computer is too slow, or too busy")
	}
	return b, nil
}

// Release makes all processes release their batches.
func Release(g proc.Group) error { return callAll(g, "Release", nil) }

// A Member is one process of a Flease group. It is exported for net/rpc.
type Member struct {
	node  *flease.Node
	names []string
	held  []*flease.Lease
}

// StartMember starts a node. Ready waits until it is ready.
func StartMember(_ context.Context, c MemberConfig) (*Member, error) {
	cfg := flease.Config{
		Self: c.Self, Lease: c.Lease, Epsilon: c.Epsilon,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	debug.SetGCPercent(cmp.Or(c.GCPercent, 100))
	for i, addr := range c.Members {
		cfg.Members = append(cfg.Members, flease.Member{ID: flease.ID(i + 1), Addr: addr})
	}
	if c.Sealed {
		cfg.Key = secret.New("a secret that is known to everyone") // as fast as a real one
	}
	if c.TCP {
		cfg.Transport = flease.TCP{}
	}
	node, err := flease.Start(cfg)
	if err != nil {
		return nil, err
	}
	return &Member{node: node}, nil
}

// Ready waits until the node can acquire leases.
func (m *Member) Ready(struct{}, *struct{}) error { return m.node.Ready(context.Background()) }

// Prepare creates the resource names of the next batch.
func (m *Member) Prepare(o Order, _ *struct{}) error {
	m.names = make([]string, o.Batch)
	for i := range m.names {
		m.names[i] = fmt.Sprintf("%d.%s.%06d", m.node.Self(), o.Name, i)
	}
	return nil
}

const batchLimit = time.Minute

// Acquire acquires a batch. It does not count leases that are invalid when the batch is complete.
func (m *Member) Acquire(_ struct{}, b *Batch) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchLimit)
	defer cancel()
	*b, err = Measure(func() (n int, err error) {
		m.held, err = m.node.AcquireAll(ctx, m.names)
		return len(m.held), err
	})
	for _, l := range m.held {
		if !l.Valid() {
			b.Leases--
		}
	}
	return err
}

// Release releases the batch. A failure is harmless: no other process wants these resources, and the leases
// expire.
func (m *Member) Release(struct{}, *struct{}) error {
	held := m.held
	m.held = nil
	ctx, cancel := context.WithTimeout(context.Background(), batchLimit)
	defer cancel()
	if err := m.node.ReleaseAll(ctx, held); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return nil
}

// Close ends the node without waiting: the other members end, too.
func (m *Member) Close() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return m.node.Close(ended)
}
