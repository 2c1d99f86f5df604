package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// A fleaseMember is one process of Flease: it answers the others, and acquires
// what it is told to.
type fleaseMember struct {
	node  *flease.Node
	held  []*flease.Lease
	names []string
}

func startFlease(ctx context.Context, args []string) (cast.Member, string, error) {
	flags := flag.NewFlagSet("flease-member", flag.ContinueOnError)
	self := flags.Int("self", 0, "which member this is, from 1")
	addrs := flags.String("members", "", "addresses of all, in order")
	lease := flags.Duration("lease", flease.DefaultLease, "how long a lease lasts")
	sealed := flags.Bool("sealed", false, "encrypt and authenticate packets")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	cfg := flease.Config{
		Self:   flease.ID(*self),
		Lease:  *lease,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for i, addr := range strings.Split(*addrs, ",") {
		cfg.Members = append(cfg.Members, flease.Member{ID: flease.ID(i + 1), Addr: addr})
	}
	if len(cfg.Members) > proposers { // else all agree on everything, which is the default
		cfg.Groups = groupOf(len(cfg.Members))
	}
	if *sealed {
		cfg.Key = secret.New("a secret that is known to everyone") // it costs as much as a good one
	}
	node, err := flease.Start(cfg)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, cast.StartLimit)
	defer cancel()
	if err := node.Ready(ctx); err != nil {
		_ = node.Close(ctx)
		return nil, "", err
	}
	return &fleaseMember{node: node}, "", nil
}

func (m *fleaseMember) Obey(ctx context.Context, o order) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, cast.OrderLimit)
	defer cancel()
	switch o.Do {
	case orderAcquire:
		return m.acquire(ctx, o)
	case orderRelease:
		m.release(ctx)
		return answer{}, nil
	}
	return answer{}, cast.UnknownOrder(o)
}

// acquire acquires one batch. Names are made before the clock starts. A lease that
// is not valid when it has stopped does not count.
func (m *fleaseMember) acquire(ctx context.Context, o order) (answer, error) {
	m.names = m.names[:0]
	for i := range o.Batch {
		m.names = append(m.names, resourceName(o.Group, int(m.node.Self()), o.Name, i))
	}
	before, begin := cast.CPUTime(), time.Now()
	leases, err := m.node.AcquireAll(ctx, m.names)
	end := time.Now()
	if err != nil {
		return answer{}, err
	}
	m.held = leases
	a := answer{Begin: begin.UnixNano(), End: end.UnixNano(), CPU: int64(cast.CPUTime() - before)}
	for _, l := range leases {
		if l.Valid() {
			a.Leases++
		}
	}
	return a, nil
}

// release gives back what was acquired. If too few members answer, that does no
// harm: nobody else wants these resources, and what is not renewed runs out.
func (m *fleaseMember) release(ctx context.Context) {
	held := m.held
	m.held = nil
	if err := m.node.ReleaseAll(ctx, held); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (m *fleaseMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cast.EndLimit/2)
	defer cancel()
	return m.node.Close(ctx)
}

// resourceName says how large the group of a resource is, and who wants it.
func resourceName(size, proposer int, name string, i int) string {
	return fmt.Sprintf("%02d.%02d.%s.%06d", size, proposer, name, i)
}

// groupOf returns who agrees on a resource: whoever wants it, and as many others
// as its name says, chosen at random for each proposer as in the paper's third
// experiment. It is asked about every resource, so all groups are made before.
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
		size, proposer, ok := parseName(resource)
		if !ok || size > members || proposer > members {
			return nil
		}
		return groups[size][proposer]
	}
}

// parseName reads what resourceName wrote first.
func parseName(resource string) (size, proposer int, ok bool) {
	if len(resource) < len("03.01.") || resource[2] != '.' || resource[5] != '.' {
		return 0, 0, false
	}
	size, first := twoDigits(resource[0:2])
	proposer, second := twoDigits(resource[3:5])
	return size, proposer, first && second
}

func twoDigits(s string) (int, bool) {
	tens, ones := s[0]-'0', s[1]-'0'
	return int(tens)*10 + int(ones), tens <= 9 && ones <= 9
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
