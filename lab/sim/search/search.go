// Package search is what "leasehold-lab sim" and "leasehold-lab flease sim" do: they search for
// violations of a protocol in many simulated worlds, or in all that can happen to a small
// group, with or without a planted bug, and report the result as text or JSON.
package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/mutant"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A Protocol is what can be searched.
type Protocol struct {
	Command    string // of leasehold-lab: "sim"
	Simulation engine.Simulation
	Faults     *engine.Mix    // of the simulation
	World      *pflag.FlagSet // the flags that shape a world; a replay repeats them
	Scenarios  func(depth int, detours int8) []explorer.Exploration
	Mutants    []mutant.Mutant
	// Notices: the branches are called notices in JSON.
	Notices bool
}

// A Job is what the flags ask for.
type Job struct {
	Protocol
	Flags *pflag.FlagSet // all, for the program with a planted bug

	First     uint64
	Seeds     int
	Parallel  int
	StopAfter int

	JSON  bool
	Trace bool

	Depth    int // of an exploration, in steps; 0 runs worlds
	Detours  int
	Scenario string // the only one; all if empty
	Replay   string // the way to go, instead of all

	ListMutants bool
	Mutant      string // to plant
	Planted     string // the mutant that this very binary is
}

// An Outcome is what a search amounts to, as an exit status. Scripts rely on the numbers: they are
// never changed.
type Outcome int

// The outcomes.
const (
	Passed      Outcome = 0
	Violated    Outcome = 1   // an invariant did not hold
	Survived    Outcome = 3   // a bug was planted, and nothing noticed it
	Interrupted Outcome = 130 // before a violation was found
)

// Bounds on the flags.
const (
	// maxParallel bounds the worlds at a time. More than one per processor gains
	// nothing, and each needs its memory.
	maxParallel = 1024
	// maxDepth bounds the steps of an exploration: far more than there is time for.
	maxDepth = 200
)

// Validate reports what is wrong, in terms of flags.
func (s *Job) Validate() error {
	for _, size := range []struct {
		flag  string
		value int
	}{{"seeds", s.Seeds}, {"parallel", s.Parallel}, {"stop-after", s.StopAfter}} {
		if size.value < 1 {
			return fmt.Errorf("--%s %d: want at least 1", size.flag, size.value)
		}
	}
	switch {
	case s.Parallel > maxParallel:
		return fmt.Errorf("--parallel %d: want at most %d; more than one world per processor gains nothing", s.Parallel, maxParallel)
	case s.Trace && s.Seeds != 1:
		return errors.New("--trace shows one world: add --seeds 1, and --seed to choose it")
	case s.Trace && s.JSON:
		return errors.New("--trace and --json cannot share the output: choose one")
	case s.Depth > 0 && s.Trace:
		return errors.New("--trace shows a world, and --explore has none: a violation is printed step by step anyway")
	}
	if err := s.validateExploration(); err != nil {
		return err
	}
	if _, ok := mutant.Find(s.Mutants, s.Mutant); s.Mutant != "" && !ok {
		return s.noSuchMutant()
	}
	return s.Simulation.Validate()
}

// Run does what valid flags ask for. It reports progress to errs.
func (s *Job) Run(ctx context.Context, out, errs io.Writer) (Outcome, error) {
	screen, progress := console.New(out), console.New(errs)
	switch {
	case s.ListMutants:
		return Passed, write(screen, strings.Join(append(s.mutantNames(), ""), "\n"))
	case s.Mutant != "":
		return s.runMutant(ctx, out, errs)
	}
	collectLess()
	switch {
	case s.Replay != "":
		return s.runReplay(screen)
	case s.Depth > 0:
		return s.runExplorer(ctx, screen, progress)
	case s.Trace:
		return s.runTrace(ctx, screen)
	}
	return s.runCampaign(ctx, screen, progress)
}

func (s *Job) runCampaign(ctx context.Context, out, progressTo console.Screen) (Outcome, error) {
	progress := console.NewProgress(progressTo, s.JSON)
	progress.Say(fmt.Sprintf("simulating %s from seed %d on, %d at a time", console.Counted(s.Seeds, "world"), s.First, min(s.Parallel, s.Seeds)))
	summary, err := engine.Campaign{
		Simulation: s.Simulation, First: s.First, Seeds: s.Seeds, StopAfter: s.StopAfter,
		Parallel: min(s.Parallel, s.Seeds),
		Progress: func(now *engine.Summary) {
			progress.Report(now.Elapsed, float64(now.Seeds)/float64(s.Seeds), s.numbers(now))
		},
	}.Run(ctx)
	progress.Stop()
	if err != nil {
		return Passed, err
	}
	r := s.report(summary, ctx.Err() != nil)
	text := r.text(out.Width)
	if s.JSON {
		text = console.JSON(r)
	}
	if err := write(out, text); err != nil {
		return Passed, err
	}
	outcome := s.outcome(r.Failed > 0, r.Ended == interrupted)
	if outcome == Survived {
		progressTo.Say("%s", s.survived())
	}
	return outcome, nil
}

// outcome is what a search amounts to.
func (s *Job) outcome(violated, interrupted bool) Outcome {
	switch {
	case violated:
		return Violated
	case interrupted:
		return Interrupted
	case s.Planted != "":
		return Survived
	}
	return Passed
}

// collectLess lets the heap grow to five times of what is alive before it is
// collected. Worlds are small, short-lived and make much garbage: at the usual
// setting a third of the time went into collecting it. A user who sets GOGC has
// the last word.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

func write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// replay is the command that does something again.
func (s *Job) replay(what string) string {
	words := []string{"go run ./cmd/leasehold-lab", s.Command}
	if s.Planted != "" {
		words = append(words, "--mutant", s.Planted)
	}
	return strings.Join(append(words, what), " ")
}

// replaySeed is the command that shows what happened in the world of a seed.
func (s *Job) replaySeed(seed uint64) string {
	words := []string{s.replay(fmt.Sprintf("--seed %d --seeds 1 --trace", seed))}
	s.World.VisitAll(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case value == f.DefValue:
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, value)
		}
	})
	return strings.Join(words, " ")
}

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
