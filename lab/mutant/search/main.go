// Search runs simulated worlds until the first violation, or explores a small group, and prints the
// violations as JSON. Tests build each mutant into this program: it has only the simulators, and links faster
// than the command with its stores and servers.
//
// Its first argument is the protocol, sim or flease. Its flags are those of leasehold-lab sim, or of
// leasehold-lab flease sim, that a mutant's World may have.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/fleasesim"
	fleaseexplore "github.com/leasehold-dev/leasehold/lab/fleasesim/explore"
	"github.com/leasehold-dev/leasehold/lab/sim"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/lab/sim/explore"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

func main() {
	if err := search(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A protocol is a protocol with its simulator.
type protocol struct {
	engine.Simulation
	world     *pflag.FlagSet
	parsed    func() error // completes the simulation after the flags are parsed
	scenarios func(depth int, detours int8) []explorer.Exploration
}

func newProtocol(name string) protocol {
	if name == "flease" {
		config := &fleasesim.Config{}
		return protocol{config, config.Flags(), func() error { return nil }, fleaseexplore.Explorations}
	}
	config := &sim.Config{}
	world := config.Flags()
	return protocol{config, world, func() error { return config.FlagsParsed(world) }, explore.Explorations}
}

func search(name string, args []string) error {
	p := newProtocol(name)
	c := engine.Campaign{Simulation: p, Parallel: 1, StopAfter: 1}
	flags := pflag.NewFlagSet("search", pflag.ContinueOnError)
	flags.Uint64Var(&c.First, "first", 1, "first seed")
	flags.IntVar(&c.Seeds, "seeds", 1000, "number of worlds")
	depth := flags.Int("explore", 0, "explore up to this number of steps instead")
	detours := flags.Int8("detours", 1, "with --explore: number of detours")
	flags.AddFlagSet(p.world)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *depth > 0 {
		return exploreAll(p.scenarios(*depth, *detours))
	}
	if err := p.parsed(); err != nil {
		return err
	}
	found, err := c.Run(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found.Failures)
}

// exploreAll explores the scenarios until the first violation.
func exploreAll(scenarios []explorer.Exploration) error {
	failures := []map[string]string{}
	for _, s := range scenarios {
		r, err := s.Explore(context.Background(), explorer.Options{})
		if err != nil {
			return err
		}
		if v := r.Violated; v != nil {
			failures = append(failures, map[string]string{"seed": s.Name() + " " + v.Replay, "invariant": v.String()})
			break
		}
	}
	return json.NewEncoder(os.Stdout).Encode(failures)
}
