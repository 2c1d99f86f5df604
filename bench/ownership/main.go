package main

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

const whatItAsks = "What does a server pay to know that it still owns the key of a request? `Check` finds the lease of a key, `Held` asks whether a lease\n" +
	"was held all along; both read the clock, and ask nobody. The floor is one reading of the clock. With etcd there are two ways. One is to look\n" +
	"whether `concurrency.Session` has ended, which is a look at a channel: it costs nothing, and says nothing, since it ends when the client\n" +
	"has noticed, which may be after others have got the lock. The other is to ask etcd: `TimeToLive` of the lease, or a `Get` of the key,\n" +
	"which goes to the leader (linearizable) or only to the nearest member (serializable, which may be old). etcd is one member here, in the\n" +
	"same process, over the loopback: the least that it can cost. The owner has 64 leases, and the map 8,000 values."

func main() {
	kit.Main(kit.Question{
		Name: "ownership", Number: 2, Title: "Ownership check", Asks: whatItAsks, Rounds: 30, Quick: 10,
		Modules: []string{"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3"},
		Run:     run,
	})
}

const turn = 20 * time.Millisecond

func run(ctx context.Context, r *kit.Run) error {
	r.Expect(2 * r.Rounds)
	checks, err := checkContestants(ctx)
	if err != nil {
		return err
	}
	defer kit.CloseAll(checks)
	checked, err := kit.Compete(ctx, checks, r.Rounds, turn, func(round int) { r.Step("checks, round %d of %d", round+1, r.Rounds) })
	if err != nil {
		return err
	}
	maps, err := mapContestants(ctx)
	if err != nil {
		return err
	}
	defer kit.CloseAll(maps)
	kept, err := kit.Compete(ctx, maps, r.Rounds, turn, func(round int) { r.Step("a map, round %d of %d", round+1, r.Rounds) })
	if err != nil {
		return err
	}
	report(r.Result, standings(checked), standings(kept))
	r.Add(kit.Section{Title: "A check", Table: costs(checked, nameSince)})
	r.Add(kit.Section{Title: "A value", Text: "What `leasemap` adds to a map with a lock around it: a check before, and one after.", Table: costs(kept, namePlain)})
	return nil
}

// standings are found by name.
func standings(all []kit.Standing) map[string]kit.Standing {
	byName := make(map[string]kit.Standing)
	for _, s := range all {
		byName[s.Name] = s
	}
	return byName
}

func costs(all []kit.Standing, floor string) *kit.Table {
	t := kit.NewTable("", "", "ns", "low", "high", "allocations", "times "+floor)
	of := standings(all)[floor]
	for _, s := range all {
		t.Add(s.Name, kit.Number(s.Nanoseconds.Median), kit.Number(s.Nanoseconds.Low), kit.Number(s.Nanoseconds.High),
			kit.Number(s.Allocations), kit.Number(kit.PairedRatio(s.Turns, of.Turns)))
	}
	return t
}

// report adds headlines, goals and losses.
func report(r *kit.Result, checks, maps map[string]kit.Standing) {
	of := func(s kit.Standing) float64 { return s.Nanoseconds.Median }
	for _, peer := range []string{nameSince, nameSession, nameSerializable, nameLinearizable, nameTimeToLive} {
		r.Less("check", of(checks[nameCheck]), "ns", peer, of(checks[peer]))
	}
	r.Less("held", of(checks[nameHeld]), "ns", nameSince, of(checks[nameSince]))
	r.Less("map-get", of(maps[nameGet]), "ns", namePlain, of(maps[namePlain]))
	r.Less("map-update", of(maps[nameUpdate]), "ns", namePlain, of(maps[namePlain]))

	for _, name := range []string{nameCheck, nameHeld} {
		times := kit.PairedRatio(checks[name].Turns, checks[nameSince].Turns)
		r.Want(name+" at most 2 times a reading of the clock", times, "times", times <= 2)
	}
	for _, name := range []string{nameUpdate, nameGet} {
		more := of(maps[name]) - of(maps[namePlain])
		r.Want(name+" less than 300 ns more than a map and a mutex", more, "ns", more < 300)
	}
	// What cores are worth for readings of the clock, for which they share nothing.
	gain := kit.PairedRatio(maps[nameUpdate].Turns, maps[nameUpdateAll].Turns) / kit.PairedRatio(maps[nameSince].Turns, maps[nameSinceAll].Turns)
	r.Want("Update gains from all cores at least 0.6 of what a reading of the clock does", gain, "", gain >= 0.6)
	for _, s := range []kit.Standing{checks[nameCheck], checks[nameHeld], maps[nameUpdate]} {
		r.Want("no allocation in "+s.Name, s.Allocations, "", s.Allocations == 0)
	}
	r.Losses = append(r.Losses,
		fmt.Sprintf("to a look at a channel, %s ns against %s: a promise needs a clock, and reading it is most of what Check costs.",
			kit.Number(of(checks[nameSession])), kit.Number(of(checks[nameCheck]))),
		fmt.Sprintf("to a map and a mutex, %s ns against %s for an update: the map checks the lease before and after, and reads the clock each time.",
			kit.Number(of(maps[namePlain])), kit.Number(of(maps[nameUpdate]))))
}
