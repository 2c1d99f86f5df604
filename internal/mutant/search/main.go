// Search runs simulated worlds until the first violation, or explores a small
// cluster, and prints what it found as JSON. It is what the tests build each mutant into: nothing but the
// simulator, which links in a moment where the command with its stores and
// servers takes seconds.
//
// Its flags are those of leasehold sim that a mutant's World may name.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/leasehold-dev/leasehold/internal/sim"
	"github.com/leasehold-dev/leasehold/internal/sim/explore"
)

func main() {
	if err := search(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func search(args []string) error {
	c := sim.Campaign{First: 1, Parallel: 1, StopAfter: 1}
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	faults := flags.String("faults", "default", "the fault mix")
	depth := flags.Int("explore", 0, "explore for so many steps, with one detour, instead")
	flags.Uint64Var(&c.First, "first", 1, "the first seed")
	flags.IntVar(&c.Seeds, "seeds", 1000, "how many worlds to run")
	flags.IntVar(&c.Config.Managers, "managers", 0, "managers in each world")
	flags.IntVar(&c.Config.Owners, "owners", 0, "owners in each world")
	flags.IntVar(&c.Config.Lookups, "lookups", 0, "lookups in each world")
	flags.IntVar(&c.Config.Namespaces, "namespaces", 0, "namespaces in each world")
	flags.BoolVar(&c.Config.Diskless, "diskless", false, "managers without a store")
	flags.BoolVar(&c.Config.Agents, "agents", false, "owners that answer for others")
	flags.BoolVar(&c.Config.EqualClocks, "equal-clocks", false, "let all clocks run at the same rate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *depth > 0 {
		return exploreAll(*depth)
	}
	mix, err := sim.ParseMix(*faults)
	if err != nil {
		return err
	}
	c.Config.Faults = mix
	found, err := c.Run(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found.Failures)
}

// exploreAll explores the scenarios until the first violation.
func exploreAll(depth int) error {
	type failure struct {
		Seed      string `json:"seed"`
		Invariant string `json:"invariant"`
	}
	failures := []failure{}
	for _, s := range explore.Scenarios(depth, 1) {
		r, err := explore.Explore(context.Background(), s, explore.Options{})
		if err != nil {
			return err
		}
		if v := r.Violated; v != nil {
			failures = append(failures, failure{s.Name() + " " + v.Replay, v.String()})
			break
		}
	}
	return json.NewEncoder(os.Stdout).Encode(failures)
}
