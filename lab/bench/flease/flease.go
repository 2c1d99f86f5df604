// Package flease compares package flease with etcd, on one computer: how many leases can be
// acquired in a second? It repeats figure 3 of the Flease paper. docs/flease.md describes the method.
//
// Each contestant is three processes on the loopback. The three Flease processes each
// acquire a batch of leases on new resources at the same time, as all machines do in the
// paper. Etcd receives as many requests, from 256 clients in this process. The measured time
// is from the first request to the last reply. Releases are not measured.
package flease

import (
	"context"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
)

const about = "How many leases can be acquired in a second, without a lock server and with one? [flease.md](flease.md) describes the method and\n" +
	"discusses the results. Each contestant is three processes on one computer that acquire batches of 10,000 leases. Figure 3 repeats that\n" +
	"of the Flease paper."

// The contestants' names.
const (
	nameFlease     = "flease"
	nameSealed     = "flease, sealed"
	nameEtcd       = "etcd"
	nameEtcdClient = "etcd, lease per client"
	nameEtcdSync   = "etcd, fsync"
)

const (
	// proposers is the number of processes that acquire leases at a time. In the paper's
	// experiments all machines submit a batch at the same time; so do the three Flease
	// processes, each for its own resources. Clients of etcd acquire the same number of
	// leases.
	proposers  = 3
	usualBatch = 10_000 // leases of each process
)

// The parts of a run.
const (
	partContest = "contest"
	partBatches = "batches"
)

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "flease", Number: 8, Title: "Flease", About: about,
		Parts: []string{partContest, partBatches}, QuickPart: partContest,
		Rounds: 3, Quick: 1, Seconds: 90, QuickSeconds: 15, Run: run,
	}
}

const roleFlease = "flease-member"

// Roles returns the roles of the processes, for [proc.Play].
func Roles() map[string]proc.Role {
	return map[string]proc.Role{roleFlease: proc.RoleOf(fleasebench.StartMember)}
}

// batchSizes are those of the paper's figure 3, and sizes between them.
func batchSizes() []int { return []int{1_000, 5_000, 10_000, 50_000} }

// A point is the rate of a contestant at one size of batches.
type point struct {
	Name string
	Size int
	Rate locks.Rate
}

func run(ctx context.Context, r *report.Run) error {
	warm, turn := 2, time.Second
	if r.Quick {
		warm, turn = 1, 300*time.Millisecond
	}
	b := &bench{Run: r, contest: &locks.Contest{Length: turn, Step: r.Step}}
	defer b.Close()
	all, err := b.open(ctx)
	if err != nil {
		return err
	}
	if _, err := b.contest.Rounds(ctx, all, warm, "warming up"); err != nil {
		return err
	}
	if r.Wants(partContest) {
		points, err := b.measure(ctx, all, "side by side")
		if err != nil {
			return err
		}
		concludeContest(r.Result, points)
	}
	if !r.Wants(partBatches) {
		return nil
	}
	var entries []locks.Entry
	for _, size := range batchSizes() {
		for _, e := range all[:3] {
			entries = append(entries, locks.Entry{Name: e.Name, Batch: proposers * size, Service: e.Service})
		}
	}
	points, err := b.measure(ctx, entries, "figure 3")
	if err == nil {
		concludeBatches(r.Result, points)
	}
	return err
}

type bench struct {
	*report.Run
	contest *locks.Contest
	proc.Cleanup
}

// measure gives entries turns.
func (b *bench) measure(ctx context.Context, entries []locks.Entry, what string) ([]point, error) {
	turns, err := b.contest.Rounds(ctx, entries, b.Rounds, what)
	if err != nil {
		return nil, err
	}
	var points []point
	for i, e := range entries {
		points = append(points, point{e.Name, e.Batch / proposers, locks.RateOf(turns[i])})
	}
	return points, nil
}

// open starts all contestants. The first three take part in figure 3, too.
func (b *bench) open(ctx context.Context) ([]locks.Entry, error) {
	b.Step("starting flease and etcd, three processes each")
	all := []locks.Entry{{Name: nameFlease}, {Name: nameEtcd}, {Name: nameEtcdClient}, {Name: nameSealed}, {Name: nameEtcdSync}}
	for i := range all {
		all[i].Batch = proposers * usualBatch
	}
	for sealed, at := range map[bool]int{false: 0, true: 3} {
		g, err := startFlease(ctx, flease.DefaultLease, sealed)
		if err != nil {
			return nil, err
		}
		b.Cleanup.Add(g.members.Close)
		all[at].Service = g
	}
	e, err := b.openEtcd(ctx, "etcd", false)
	if err != nil {
		return nil, err
	}
	all[1].Service = e.PerLock(b.contest.Length)
	if all[2].Service, err = e.PerClient(ctx, b.contest.Length); err != nil {
		return nil, err
	}
	if e, err = b.openEtcd(ctx, "etcd-fsync", true); err != nil {
		return nil, err
	}
	all[4].Service = e.PerLock(b.contest.Length)
	return all, nil
}

func (b *bench) openEtcd(ctx context.Context, dir string, fsync bool) (*locks.Etcd, error) {
	e, err := locks.StartEtcd(ctx, 3, filepath.Join(b.Dir, dir), fsync)
	if err == nil {
		b.Cleanup.Add(e.Close)
	}
	return e, err
}

// A group is processes that all acquire leases.
type group struct{ members proc.Group }

func startFlease(ctx context.Context, lease time.Duration, sealed bool) (*group, error) {
	g, err := fleasebench.Start(ctx, roleFlease, proposers, fleasebench.MemberConfig{Lease: lease, Sealed: sealed})
	return &group{g}, err
}

func (g *group) Acquire(_ context.Context, n int, name string) (locks.Turn, error) {
	if err := fleasebench.Prepare(g.members, fleasebench.Order{Batch: n / len(g.members), Name: name}); err != nil {
		return locks.Turn{}, err
	}
	b, err := fleasebench.Acquire(g.members)
	return locks.Turn{Leases: b.Leases, Took: b.Took(), CPU: b.CPU}, err
}

func (g *group) Release(context.Context) error { return fleasebench.Release(g.members) }
