// Command grants measures the rate of joins and grants, compared with etcd's leases and
// put-if-absent, with and without connecting first, etcd's mutexes, and ZooKeeper's
// ephemeral nodes.
//
//	cd lab/bench && go run ./grants          minutes
//	cd lab/bench && go run ./grants -quick   short and rough
package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "Joins of owners and grants of leases per second. The peers do as much as possible of the same:\n" +
	"\n" +
	"- An owner per lease: 256 clients over 4 connections to the manager; each joins a new owner, waits for its range, and continues\n" +
	"  with the next; owners stay and renew. Peer: 256 clients over 4 connections to etcd's leader, each a lease and a put if absent,\n" +
	"  not kept alive. Clients run the protocol only.\n" +
	"- With its connection: 1,000 owners start at once with the whole library; each connects, joins and receives its range. Peer: each\n" +
	"  connects to etcd, starts a session, and puts its key.\n" +
	"- 256 owners connect, join and receive 4,096 ranges. Peers, with existing sessions: puts in etcd under one lease per client,\n" +
	"  etcd's mutex, ephemeral nodes of ZooKeeper.\n" +
	"\n" +
	"A turn of a swarm lasts a second; ours ends at 4,096 joins, the maximum of fixed ranges. All services run as three processes on\n" +
	"one host, on disk; the manager's store is an etcd cluster like the peer. Releases are not measured."

// The contestants.
const (
	nameJoins         = "leasehold, an owner per lease"
	nameNewcomers     = "leasehold, an owner per lease, with its connection"
	nameLeases        = "leasehold, 256 owners"
	nameEtcdLock      = "etcd lease and put-if-absent"
	nameEtcdNewcomers = "etcd lease and put-if-absent, with its connection"
	nameEtcdPut       = "etcd put-if-absent, lease per client"
	nameEtcdMutex     = "etcd mutex"
	nameZooKeeper     = "ZooKeeper ephemeral node"
)

// The leases of a turn. Clients of lock services continue until the turn is over.
const (
	arriving = 1_000
	leases   = 4_096
	endless  = 1 << 20
)

func main() {
	proc.Play(roles())
	report.Main(report.Benchmark{
		Name: "grants", Number: 6, Title: "Grant rate", About: about, Rounds: 10, Quick: 1,
		Modules: []string{"github.com/go-zookeeper/zk", "go.etcd.io/etcd/server/v3"},
		Run:     run,
	})
}

func roles() map[string]proc.Role {
	all := locks.Roles()
	all[roleManager] = proc.RoleOf(startManager)
	return all
}

type options struct {
	dir  string
	turn time.Duration
}

func run(ctx context.Context, r *report.Run) error {
	warm, o := 3, options{r.Dir, time.Second}
	if r.Quick {
		warm, o.turn = 1, 300*time.Millisecond
	}
	r.Note("starting leasehold, etcd and ZooKeeper")
	openers := []locks.Opener{o.openLeasehold, o.openEtcd}
	if err := locks.HaveZooKeeper(); err != nil {
		r.Skip("ZooKeeper", err)
	} else {
		openers = append(openers, func(ctx context.Context) ([]locks.Entry, func(), error) {
			z, err := locks.StartZooKeeper(ctx, filepath.Join(o.dir, "zookeeper"), true, o.turn)
			if err != nil {
				return nil, nil, err
			}
			r.Versions = append(r.Versions, "ZooKeeper "+z.Version)
			return []locks.Entry{{Name: nameZooKeeper, Batch: endless, Service: z}}, z.Close, nil
		})
	}
	all, end, err := locks.Open(ctx, openers...)
	if err != nil {
		return err
	}
	defer end()
	r.Expect((warm + r.Rounds) * len(all))
	c := &locks.Contest{Step: r.Step}
	if _, err := c.Rounds(ctx, all, warm, "warming up"); err != nil {
		return err
	}
	turns, err := c.Rounds(ctx, all, r.Rounds, "granting")
	if err != nil {
		return err
	}
	conclude(r.Result, all, turns)
	return nil
}

// openLeasehold starts one manager for three contestants.
func (o options) openLeasehold(ctx context.Context) ([]locks.Entry, func(), error) {
	s, err := startSystem(ctx, 3, filepath.Join(o.dir, "store"), true)
	if err != nil {
		return nil, nil, fmt.Errorf("leasehold: %w", err)
	}
	return []locks.Entry{
		{Name: nameJoins, Batch: leases, Service: &sharers{system: s, limit: o.turn, clock: clock.New()}},
		{Name: nameNewcomers, Batch: arriving, Service: &newcomers{system: s}},
		{Name: nameLeases, Batch: leases, Service: &newcomers{system: s, owners: locks.Clients}},
	}, s.Close, nil
}

// openEtcd starts one cluster for four contestants.
func (o options) openEtcd(ctx context.Context) ([]locks.Entry, func(), error) {
	e, err := locks.StartEtcd(ctx, 3, filepath.Join(o.dir, "etcd"), true)
	if err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	perClient, err := e.PerClient(o.turn)
	if err != nil {
		return nil, e.Close, fmt.Errorf("etcd: %w", err)
	}
	mutex, err := e.Mutex(o.turn)
	if err != nil {
		return nil, e.Close, fmt.Errorf("etcd: %w", err)
	}
	return []locks.Entry{
		{Name: nameEtcdLock, Batch: endless, Service: e.PerLock(o.turn)},
		{Name: nameEtcdNewcomers, Batch: arriving, Service: e.Newcomers()},
		{Name: nameEtcdPut, Batch: endless, Service: perClient},
		{Name: nameEtcdMutex, Batch: endless, Service: mutex},
	}, e.Close, nil
}

func conclude(r *report.Result, all []locks.Entry, turns [][]locks.Turn) {
	t := report.NewTable("", "", "granted/s", "low", "high", "processors, µs each")
	rates := make(map[string]float64)
	for i, e := range all {
		rate := locks.RateOf(turns[i])
		rates[e.Name] = rate.Median
		t.Add(e.Name, rate.Summary, rate.Effort)
	}
	r.Add(report.Section{Title: "Granted in a second, with fsync", Table: t})
	compare(r, rates, "joins", nameJoins, nameEtcdLock, nameEtcdPut, nameEtcdMutex, nameZooKeeper)
	compare(r, rates, "joins-connecting", nameNewcomers, nameEtcdNewcomers)
	compare(r, rates, "leases", nameLeases, nameEtcdLock, nameEtcdPut, nameEtcdMutex, nameZooKeeper)
	r.Want("as many joins in a second as etcd grants leases and puts keys", rates[nameJoins], "1/s", rates[nameJoins] >= rates[nameEtcdLock])
	r.Want("the same with connections", rates[nameNewcomers], "1/s", rates[nameNewcomers] >= rates[nameEtcdNewcomers])
	r.Want("more leases in a second than etcd grants", rates[nameLeases], "1/s", rates[nameLeases] > rates[nameEtcdLock])
}

func compare(r *report.Result, rates map[string]float64, headline, ours string, peers ...string) {
	for _, peer := range peers {
		theirs, ok := rates[peer]
		if !ok {
			continue
		}
		r.More(headline, rates[ours], "1/s", peer, theirs)
		if rates[ours] < theirs {
			r.Lose("to %s, %s/s against %s/s of %s. %s.",
				peer, report.Thousands(theirs), report.Thousands(rates[ours]), ours, difference(ours))
		}
	}
}

// difference describes the work in our turn that others do not do. Its share of the difference
// was not measured.
func difference(ours string) string {
	switch ours {
	case nameJoins:
		return "Each owner is a separate session that acknowledges the manager and renews; clients of the peers have their session before, if any"
	case nameNewcomers:
		return "An owner acknowledges the manager before it receives a grant"
	}
	return "owners connect and join within the turn"
}
