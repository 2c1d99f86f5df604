// Package ownership measures the cost of verifying ownership of a key: owner.Check and
// owner.Held, compared with a reading of the clock and with etcd.
package ownership

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "The cost of an ownership check in a server: `Check` finds the lease of a key, `Held` tests a lease for gaps; both read the clock\n" +
	"locally. The lower bound is one clock reading. etcd offers two checks. `concurrency.Session.Done` is a channel that closes when\n" +
	"the client detects the end, possibly after another client has the lock. The other is a request, a `Get`,\n" +
	"linearizable at the leader or serializable at a member, possibly stale. etcd is one member on the same host, over loopback: its\n" +
	"minimum. The owner has 64 leases, the map 8,000 values."

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "ownership", Number: 2, Title: "Ownership check", About: about,
		Rounds: 30, Quick: 10, Seconds: 12, QuickSeconds: 5, Run: run,
	}
}

const turn = 20 * time.Millisecond

func run(ctx context.Context, r *report.Run) error {
	var ends proc.Cleanup
	defer ends.Close()
	o, err := joinOwner(ctx, r.Dir, &ends)
	if err != nil {
		return err
	}
	checks, err := checkContestants(ctx, o, r.Dir, &ends)
	if err != nil {
		return err
	}
	checked, err := report.Compete(ctx, checks, r.Rounds, turn, func(round int) { r.Step("checks, round %d of %d", round+1, r.Rounds) })
	if err != nil {
		return err
	}
	maps, err := mapContestants(ctx, o)
	if err != nil {
		return err
	}
	kept, err := report.Compete(ctx, maps, r.Rounds, turn, func(round int) { r.Step("a map, round %d of %d", round+1, r.Rounds) })
	if err != nil {
		return err
	}
	conclude(r.Result, standings(checked), standings(kept))
	r.Add("A check", "", costs(checked, nameSince))
	r.Add("A value", "`leasemap` against a map with a mutex: it checks the lease before and after.", costs(kept, namePlain))
	return nil
}

func standings(all []report.Standing) map[string]report.Standing {
	return report.ByName(all, func(s report.Standing) string { return s.Name })
}

func costs(all []report.Standing, floor string) *report.Table {
	t := report.NewTable("", "", "ns", "low", "high", "allocations", "times "+floor)
	of := standings(all)[floor]
	for _, s := range all {
		t.Add(s.Name, s.Nanoseconds, s.Allocations, report.PairedRatio(s.Turns, of.Turns))
	}
	return t
}

func conclude(r *report.Result, checks, maps map[string]report.Standing) {
	of := func(s report.Standing) float64 { return s.Nanoseconds.Median }
	for _, peer := range []string{nameSince, nameSession, nameSerializable, nameLinearizable} {
		r.Less("check", of(checks[nameCheck]), "ns", peer, of(checks[peer]))
	}
	r.Less("held", of(checks[nameHeld]), "ns", nameSince, of(checks[nameSince]))
	r.Less("map-get", of(maps[nameGet]), "ns", namePlain, of(maps[namePlain]))
	r.Less("map-update", of(maps[nameUpdate]), "ns", namePlain, of(maps[namePlain]))

	for _, name := range []string{nameCheck, nameHeld} {
		times := report.PairedRatio(checks[name].Turns, checks[nameSince].Turns)
		r.Want(name+" at most 2 times a reading of the clock", times, "times", times <= 2)
	}
	for _, name := range []string{nameUpdate, nameGet} {
		more := of(maps[name]) - of(maps[namePlain])
		r.Want(name+" less than 300 ns more than a map and a mutex", more, "ns", more < 300)
	}
	for _, s := range []report.Standing{checks[nameCheck], checks[nameHeld], maps[nameUpdate]} {
		r.Want("no allocation in "+s.Name, s.Allocations, "", s.Allocations == 0)
	}
	r.Lose("to a channel read, %v ns against %v: a lease check reads the clock, which is most of its cost.",
		of(checks[nameSession]), of(checks[nameCheck]))
	r.Lose("to a map and a mutex, %v ns against %v for an update: the map checks the lease before and after, and reads the clock each time.",
		of(maps[namePlain]), of(maps[nameUpdate]))
}
