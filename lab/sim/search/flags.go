package search

import (
	"runtime"

	"github.com/spf13/pflag"
)

// AddFlags adds the flags of a search, in the order in which the help lists them. The
// default is to run so many seeds.
func (s *Job) AddFlags(flags *pflag.FlagSet, seeds int) {
	s.Flags = flags
	flags.SortFlags = false
	flags.IntVar(&s.Seeds, "seeds", seeds, "how many worlds to run, one for each seed")
	flags.Uint64Var(&s.First, "seed", 1, "the first seed")
	flags.AddFlagSet(s.World)
	flags.IntVar(&s.Parallel, "parallel", runtime.NumCPU(), "how many worlds to run at a time; changes only the speed")
	flags.Lookup("parallel").DefValue = "all processors" // the same help everywhere
	flags.IntVar(&s.StopAfter, "stop-after", 100, "stop after so many violations")
	flags.IntVar(&s.Depth, "explore", 0, "try all that can happen in so many `steps`, instead of worlds")
	flags.IntVar(&s.Detours, "detours", 1, "with --explore: how often what is usual does not happen; -1 for no limit")
	flags.StringVar(&s.Scenario, "scenario", "", "with --explore: the `name` of the only one to explore, such as "+s.Scenarios(1, 1)[0].Name())
	flags.StringVar(&s.Replay, "replay", "", "with --explore and --scenario: show the `way` to a violation, as it was printed")
	flags.BoolVar(&s.JSON, "json", false, "print the summary as one JSON object, and nothing else")
	flags.BoolVar(&s.Trace, "trace", false, "print what happens, line by line; only with --seeds 1")
	flags.BoolVar(&s.ListMutants, "list-mutants", false, "list the bugs that can be planted, and do nothing else")
	flags.StringVar(&s.Mutant, "mutant", "", "plant the bug of this `name`, and search until the first violation; needs a\ncheckout and the go command; --seeds is, unless given, what the bug needs")
	flags.StringVar(&s.Planted, "planted", "", "the mutant that this binary is")
	flags.Lookup("planted").Hidden = true
}
