package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/secret"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// A group is processes that all want leases: of Flease, or of the floor.
type group struct {
	members proc.Group
	size    int // of the groups that agree
}

// startFlease starts processes of Flease.
func startFlease(ctx context.Context, members int, lease time.Duration, sealed bool) (*group, error) {
	return startGroup(ctx, roleFlease, members, func(self int, addrs []string) any {
		return FleaseConfig{Self: flease.ID(self + 1), Members: addrs, Lease: lease, Sealed: sealed}
	})
}

func startGroup(ctx context.Context, role string, members int, config func(self int, addrs []string) any) (*group, error) {
	addrs, err := process.FreePorts(members)
	if err != nil {
		return nil, err
	}
	g, err := proc.StartGroup(ctx, role, members, func(i int) any { return config(i, addrs) })
	return &group{members: g, size: 3}, err
}

// An Order is what each process acquires.
type Order struct {
	Batch int    // leases
	Name  string // their names begin with it
	Group int    // how many members agree on each
}

// A Batch is what a process has acquired. All processes have the same clock.
type Batch struct {
	Leases     int
	Begin, End time.Time
	CPU        time.Duration
}

// measure returns what acquire takes, which returns the number of leases.
func measure(acquire func() (int, error)) (b Batch, err error) {
	before := proc.CPUTime()
	b.Begin = time.Now()
	b.Leases, err = acquire()
	b.End, b.CPU = time.Now(), proc.CPUTime()-before
	return b, err
}

// Acquire has all processes acquire their share at the same time: all leases, from the
// first that began to the last that ended.
func (g *group) Acquire(_ context.Context, n int, name string) (locks.Turn, error) {
	all, err := proc.CallAll[Batch](g.members, "Acquire", Order{Batch: n / len(g.members), Name: name, Group: g.size})
	if err != nil {
		return locks.Turn{}, err
	}
	t := together(all)
	if t.Leases == 0 {
		return t, errors.New("all leases were lost before the batch was complete: the computer is too slow, or too busy")
	}
	return t, nil
}

func together(all []Batch) (t locks.Turn) {
	begin, end := all[0].Begin, all[0].End
	for _, b := range all {
		t.Leases += b.Leases
		t.CPU += b.CPU
		if b.Begin.Before(begin) {
			begin = b.Begin
		}
		if b.End.After(end) {
			end = b.End
		}
	}
	t.Took = end.Sub(begin)
	return t
}

// Release gives back what was acquired.
func (g *group) Release(context.Context) error {
	_, err := proc.CallAll[struct{}](g.members, "Release", nil)
	return err
}

func (g *group) close() { g.members.Close() }

// FleaseConfig is that of one process of Flease.
type FleaseConfig struct {
	Self    flease.ID
	Members []string // addresses of all, in order
	Lease   time.Duration
	Sealed  bool // packets are encrypted and authenticated
}

// FleaseMember is one process of Flease. It is exported for net/rpc.
type FleaseMember struct {
	node *flease.Node
	held []*flease.Lease
}

func startFleaseMember(ctx context.Context, c FleaseConfig) (*FleaseMember, error) {
	cfg := flease.Config{
		Self: c.Self, Lease: c.Lease,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for i, addr := range c.Members {
		cfg.Members = append(cfg.Members, flease.Member{ID: flease.ID(i + 1), Addr: addr})
	}
	if len(cfg.Members) > proposers { // else all agree on everything, which is the default
		cfg.Groups = groupOf(len(cfg.Members))
	}
	if c.Sealed {
		cfg.Key = secret.New("a secret that is known to everyone") // it costs as much as a good one
	}
	node, err := flease.Start(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, proc.StartLimit)
	defer cancel()
	if err := node.Ready(ctx); err != nil {
		_ = node.Close(ctx)
		return nil, err
	}
	return &FleaseMember{node: node}, nil
}

// Acquire acquires one batch. Names are made before the clock starts. A lease that is
// not valid when the batch is complete does not count.
func (m *FleaseMember) Acquire(o Order, b *Batch) error {
	names := make([]string, o.Batch)
	for i := range names {
		names[i] = resourceName(o.Group, int(m.node.Self()), o.Name, i)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	*b, err = measure(func() (n int, err error) {
		m.held, err = m.node.AcquireAll(ctx, names)
		return len(m.held), err
	})
	for _, l := range m.held {
		if !l.Valid() {
			b.Leases--
		}
	}
	return err
}

// Release gives back what was acquired. If too few members answer, that does no harm:
// no other process wants these resources, and what is not renewed expires.
func (m *FleaseMember) Release(struct{}, *struct{}) error {
	held := m.held
	m.held = nil
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.node.ReleaseAll(ctx, held); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return nil
}

// Close ends the node.
func (m *FleaseMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), proc.EndLimit/2)
	defer cancel()
	return m.node.Close(ctx)
}

// resourceName encodes the size of the group of a resource, and its proposer.
func resourceName(size, proposer int, name string, i int) string {
	return fmt.Sprintf("%02d.%02d.%s.%06d", size, proposer, name, i)
}

// groupOf returns the members that agree on a resource: its proposer, and as many
// others as its name says, chosen at random for each proposer as in the paper's third
// experiment. It is called for every resource, so all groups are made before.
func groupOf(members int) func(resource string) []flease.ID {
	groups := make([][][]flease.ID, members+1) // by size and proposer
	for size := range groups {
		groups[size] = make([][]flease.ID, members+1)
		for proposer := range groups[size] {
			if size > 0 && proposer > 0 {
				groups[size][proposer] = chooseGroup(members, size, proposer)
			}
		}
	}
	return func(resource string) []flease.ID {
		if len(resource) < len("03.01.") || resource[2] != '.' || resource[5] != '.' {
			return nil
		}
		size, err := strconv.ParseUint(resource[:2], 10, 8)
		proposer, wrong := strconv.ParseUint(resource[3:5], 10, 8)
		if err != nil || wrong != nil || int(size) > members || int(proposer) > members {
			return nil
		}
		return groups[size][proposer]
	}
}

// chooseGroup chooses the same on every call.
func chooseGroup(members, size, proposer int) []flease.ID {
	random := rand.New(rand.NewPCG(uint64(size), uint64(proposer)))
	group := []flease.ID{flease.ID(proposer)}
	for _, other := range random.Perm(members) {
		if len(group) < size && other+1 != proposer {
			group = append(group, flease.ID(other+1))
		}
	}
	slices.Sort(group)
	return group
}
