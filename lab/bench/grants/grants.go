// Package grants measures the rate of joins and grants, compared with etcd's leases and
// put-if-absent, with and without connecting first.
package grants

import (
	"context"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "Joins of owners and grants of leases per second. The peers do as much as possible of the same:\n" +
	"\n" +
	"- With its connection: 1,000 owners start at once with the whole library; each connects, joins and receives its range. Peer: each\n" +
	"  connects to etcd, starts a session, and puts its key.\n" +
	"- 256 owners connect, join and receive 4,096 ranges. Peers: 256 clients with existing sessions over 4 connections to etcd's\n" +
	"  leader, each a lease and a put if absent, or puts only, under one lease per client.\n" +
	"\n" +
	"A turn of a peer lasts a second. All services run as three processes on one host, on disk; the manager's store is an etcd cluster\n" +
	"like the peer. Releases, and joins over existing connections, are not measured."

// The contestants.
const (
	nameNewcomers     = "leasehold, an owner per lease, with its connection"
	nameLeases        = "leasehold, 256 owners"
	nameEtcdLock      = "etcd lease and put-if-absent"
	nameEtcdNewcomers = "etcd lease and put-if-absent, with its connection"
	nameEtcdPut       = "etcd put-if-absent, lease per client"
)

// The leases of a turn. Clients of lock services continue until the turn is over.
const (
	arriving = 1_000
	leases   = 4_096
	endless  = 1 << 20
)

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "grants", Number: 6, Title: "Grant rate", About: about,
		Rounds: 10, Quick: 1, Seconds: 110, QuickSeconds: 15, Run: run,
	}
}

func run(ctx context.Context, r *report.Run) error {
	warm, turn := 3, time.Second
	if r.Quick {
		warm, turn = 1, 300*time.Millisecond
	}
	r.Step("starting leasehold and etcd")
	s, err := startSystem(ctx, 3, filepath.Join(r.Dir, "store"), true)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := locks.StartEtcd(ctx, 3, filepath.Join(r.Dir, "etcd"), true)
	if err != nil {
		return err
	}
	defer e.Close()
	perClient, err := e.PerClient(ctx, turn)
	if err != nil {
		return err
	}
	all := []locks.Entry{
		{Name: nameNewcomers, Batch: arriving, Service: &newcomers{system: s}},
		{Name: nameLeases, Batch: leases, Service: &newcomers{system: s, owners: locks.Clients}},
		{Name: nameEtcdLock, Batch: endless, Service: e.PerLock(turn)},
		{Name: nameEtcdNewcomers, Batch: arriving, Service: e.Newcomers()},
		{Name: nameEtcdPut, Batch: endless, Service: perClient},
	}
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

func conclude(r *report.Result, all []locks.Entry, turns [][]locks.Turn) {
	t := report.NewTable("", "", "granted/s", "low", "high", "processors, µs each")
	rates := make(map[string]float64)
	for i, e := range all {
		rate := locks.RateOf(turns[i])
		rates[e.Name] = rate.Median
		t.Add(e.Name, rate.Summary, rate.Effort)
	}
	r.Add("Granted in a second, with fsync", "", t)
	compare(r, rates, "joins-connecting", nameNewcomers, nameEtcdNewcomers)
	compare(r, rates, "leases", nameLeases, nameEtcdLock, nameEtcdPut)
	r.Want("as many joins in a second as clients of etcd connect and put their keys", rates[nameNewcomers], "1/s", rates[nameNewcomers] >= rates[nameEtcdNewcomers])
	r.Want("more leases in a second than etcd grants", rates[nameLeases], "1/s", rates[nameLeases] > rates[nameEtcdLock])
}

func compare(r *report.Result, rates map[string]float64, headline, ours string, peers ...string) {
	for _, peer := range peers {
		r.More(headline, rates[ours], "1/s", peer, rates[peer])
		if rates[ours] < rates[peer] {
			r.Lose("to %s, %v/s against %v/s of %s: an owner connects, joins and acknowledges the manager within the turn.",
				peer, rates[peer], rates[ours], ours)
		}
	}
}
