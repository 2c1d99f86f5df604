// Package search implements "leasehold-lab sim" and "leasehold-lab flease sim": the search for violations of
// a protocol in many simulated worlds, or in all behaviour of a small group, with or without a planted bug.
// It reports the result as text or JSON.
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

// A Protocol is a protocol with its simulator.
type Protocol struct {
	Command    string // subcommand of leasehold-lab: "sim"
	Simulation engine.Simulation
	Faults     *engine.Mix    // of Simulation
	World      *pflag.FlagSet // the flags of a world; a replay repeats them
	Scenarios  func(depth int, detours int8) []explorer.Exploration
	Mutants    []mutant.Mutant
	// Notices: in JSON, the branches are called notices.
	Notices bool
}

// A Job is a search with its flags.
type Job struct {
	Protocol
	Flags *pflag.FlagSet // all flags, for the program with a planted bug

	First     uint64
	Seeds     int
	Parallel  int
	StopAfter int

	JSON  bool
	Trace bool

	Depth    int // of an exploration, in steps; 0 runs a campaign
	Detours  int
	Scenario string // a single scenario; all if empty
	Replay   string // path to repeat, instead of an exploration

	ListMutants bool
	Mutant      string // name of the bug to plant
	Planted     string // name of the bug in this binary
}

// An Outcome is the result of a search, as an exit status. Scripts rely on the numbers: they do not change.
type Outcome int

// The outcomes.
const (
	Passed      Outcome = 0
	Violated    Outcome = 1   // an invariant was violated
	Survived    Outcome = 3   // no check has detected the planted bug
	Interrupted Outcome = 130 // before a violation was found
)

// Limits of the flags.
const (
	// maxParallel limits the concurrent worlds. More than one per processor are not faster, and each needs
	// memory.
	maxParallel = 1024
	// maxDepth limits the steps of an exploration, to far more than is feasible.
	maxDepth = 200
)

// Validate returns an error for invalid flags.
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
		return fmt.Errorf("--parallel %d: want at most %d; more than one world per processor is not faster", s.Parallel, maxParallel)
	case s.Trace && s.Seeds != 1:
		return errors.New("--trace requires --seeds 1, with --seed for the world")
	case s.Trace && s.JSON:
		return errors.New("--trace and --json exclude each other")
	case s.Depth > 0 && s.Trace:
		return errors.New("--trace and --explore exclude each other: a violation is always printed with its steps")
	}
	if err := s.validateExploration(); err != nil {
		return err
	}
	if _, ok := mutant.Find(s.Mutants, s.Mutant); s.Mutant != "" && !ok {
		return s.noSuchMutant()
	}
	return s.Simulation.Validate()
}

// Run executes the job, whose flags must be valid. It reports progress to errs.
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
	progress.Say(fmt.Sprintf("simulating %s from seed %d on, %d in parallel", console.Counted(s.Seeds, "world"), s.First, min(s.Parallel, s.Seeds)))
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

// outcome returns the outcome of a search.
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

// collectLess sets the garbage collector to run when the heap has grown fivefold. Worlds are small,
// short-lived and allocate much: with the default a third of the time is spent in the collector. GOGC takes
// precedence.
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

// replay returns the command that repeats a search.
func (s *Job) replay(what string) string {
	words := []string{"go run ./cmd/leasehold-lab", s.Command}
	if s.Planted != "" {
		words = append(words, "--mutant", s.Planted)
	}
	return strings.Join(append(words, what), " ")
}

// replaySeed returns the command that prints the trace of a seed.
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

// AddFlags adds the flags of a search, in the order of the help, with a default number of seeds.
func (s *Job) AddFlags(flags *pflag.FlagSet, seeds int) {
	s.Flags = flags
	flags.SortFlags = false
	flags.IntVar(&s.Seeds, "seeds", seeds, "number of worlds, one for each seed")
	flags.Uint64Var(&s.First, "seed", 1, "first seed")
	flags.AddFlagSet(s.World)
	flags.IntVar(&s.Parallel, "parallel", runtime.NumCPU(), "number of concurrent worlds; affects only the speed")
	flags.Lookup("parallel").DefValue = "all processors" // the same help everywhere
	flags.IntVar(&s.StopAfter, "stop-after", 100, "stop after this number of violations")
	flags.IntVar(&s.Depth, "explore", 0, "explore all behaviour up to this number of `steps`, instead of worlds")
	flags.IntVar(&s.Detours, "detours", 1, "with --explore: maximum number of steps with a fault or reordering; -1 for no limit")
	flags.StringVar(&s.Scenario, "scenario", "", "with --explore: `name` of a single scenario, such as "+s.Scenarios(1, 1)[0].Name())
	flags.StringVar(&s.Replay, "replay", "", "with --explore and --scenario: repeat the `path` to a violation, as it was printed")
	flags.BoolVar(&s.JSON, "json", false, "print only the summary, as one JSON object")
	flags.BoolVar(&s.Trace, "trace", false, "print all events of a world, one per line; requires --seeds 1")
	flags.BoolVar(&s.ListMutants, "list-mutants", false, "list the bugs that can be planted, and exit")
	flags.StringVar(&s.Mutant, "mutant", "", "plant the bug of this `name`, and search until the first violation; requires a\ncheckout and the go command; --seeds defaults to the number that the bug needs")
	flags.StringVar(&s.Planted, "planted", "", "name of the mutant in this binary")
	flags.Lookup("planted").Hidden = true
}
