// Flease is what the tests build each mutant of Flease into: it runs simulated
// worlds of Flease until the first violation, or explores a small group, and
// prints what it found as JSON.
//
// Its flags are those of leasehold flease sim that a mutant's World may name.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/leasehold-dev/leasehold/internal/fleasesim"
	"github.com/leasehold-dev/leasehold/internal/fleasesim/explore"
)

func main() {
	if err := search(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func search(args []string) error {
	c := fleasesim.Campaign{First: 1, Parallel: 1, StopAfter: 1}
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	world := flags.String("world", "any", "the kind of worlds")
	faults := flags.String("faults", "default", "the fault mix")
	depth := flags.Int("explore", 0, "explore for so many steps, with two detours, instead")
	flags.Uint64Var(&c.First, "first", 1, "the first seed")
	flags.IntVar(&c.Seeds, "seeds", 1000, "how many worlds to run")
	flags.IntVar(&c.Config.Processes, "processes", 0, "processes in each world")
	flags.IntVar(&c.Config.Resources, "resources", 0, "resources in each world")
	flags.DurationVar(&c.Config.Duration, "duration", 0, "how long faults go on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *depth > 0 {
		return exploreAll(*depth)
	}
	var err error
	if c.Config.Kind, err = fleasesim.ParseKind(*world); err != nil {
		return err
	}
	if c.Config.Faults, err = fleasesim.ParseMix(*faults); err != nil {
		return err
	}
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
	for _, s := range explore.Scenarios(depth, 2) {
		r, err := explore.Explore(context.Background(), s)
		if err != nil {
			return err
		}
		if r.Violated != nil {
			failures = append(failures, failure{s.Name, fmt.Sprintf("%s: %q", r.Violated.Text, r.Violated.Path)})
			break
		}
	}
	return json.NewEncoder(os.Stdout).Encode(failures)
}
