package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/fleasesim"
)

// fleaseSimOptions is what the flags of flease sim say.
type fleaseSimOptions struct {
	campaign fleasesim.Campaign
	kind     string
	faults   string
	world    *pflag.FlagSet // the flags that shape a world; a replay repeats them

	explore int // steps; 0 runs worlds
	detours int

	json  bool
	trace bool

	listMutants bool
	mutant      string // to plant
	planted     string // the mutant that this very binary is
}

const fleaseSimHelp = `Runs groups of the real Flease machine in virtual time, over a network that
loses, repeats and delays, with crashes that forget everything, and checks on true
time that no two processes hold one lease. Flease is safe if either the wall clocks
agree within epsilon, or the monotonic clocks run at rates within the drift bound;
so there are worlds in which only the one holds (--world wall), or only the other
(--world mono), or both, or in which two processes have the same id (twins).

Each world is made from a seed: the same seed, flags and code give the same world,
so a violation is printed together with the command that replays it.

With --explore it tries instead all that can happen to a group of three within so
many steps, with so many --detours from what would happen if nothing were wrong:
a packet overtakes another or is held back, perhaps for ever, or a process dies.
--detours -1 tries all interleavings, of which there are very many.

--faults is "default", "none", or kinds with weights, such as crash=3,loss=1. The
kinds are:

%s
Exit status: 0 no violation; 1 violations; 2 it could not be done as asked; 3 a bug
was planted with --mutant and nothing noticed it; 130 interrupted.`

const fleaseSimExample = `  leasehold flease sim                                  # 2000 worlds
  leasehold flease sim --world mono --seeds 10000       # only monotonic clocks can be trusted
  leasehold flease sim --seed 17 --seeds 1 --trace      # what happens in world 17
  leasehold flease sim --explore 14 --detours 2         # everything that can happen`

func newFleaseSimCommand() *cobra.Command {
	o := &fleaseSimOptions{}
	var kinds []entry
	for _, name := range fleasesim.FaultNames() {
		kinds = append(kinds, entry{name: name})
	}
	cmd := &cobra.Command{
		Use:     "sim",
		Short:   "Search for violations of Flease in simulated groups",
		Long:    fmt.Sprintf(fleaseSimHelp, grid(kinds, usualWidth)),
		Example: fleaseSimExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *fleaseSimOptions) addFlags(flags *pflag.FlagSet) {
	var usual fleasesim.Config
	if err := usual.Validate(); err != nil {
		panic(err) // the zero Config is valid
	}
	flags.SortFlags = false
	c := &o.campaign
	flags.IntVar(&c.Seeds, "seeds", 2000, "how many worlds to run, one for each seed")
	flags.Uint64Var(&c.First, "seed", 1, "the first seed")
	o.world = pflag.NewFlagSet("world", pflag.ContinueOnError)
	o.world.SortFlags = false
	o.world.StringVar(&o.kind, "world", "any", "the `kind` of worlds: "+strings.Join(fleasesim.KindNames(), ", "))
	o.world.StringVar(&o.faults, "faults", "default", "a `mix` of faults: what strikes, and how often")
	o.world.IntVar(&c.Config.Processes, "processes", 0, "processes in each world, 3 to 7; 0 lets the seed choose")
	o.world.IntVar(&c.Config.Resources, "resources", 0, "resources in each world, 1 to 4; 0 lets the seed choose")
	o.world.DurationVar(&c.Config.Duration, "duration", usual.Duration, "how long faults go on in each world, in its own time; a lease lasts 1s")
	flags.AddFlagSet(o.world)
	flags.IntVar(&o.explore, "explore", 0, "try all that can happen in so many `steps`, instead of worlds")
	flags.IntVar(&o.detours, "detours", 1, "with --explore: how often what is usual does not happen; -1 for no limit")
	flags.IntVar(&c.Parallel, "parallel", runtime.NumCPU(), "how many worlds to run at a time; changes only the speed")
	flags.Lookup("parallel").DefValue = "all processors" // the same help everywhere
	flags.IntVar(&c.StopAfter, "stop-after", 100, "stop after so many violations")
	flags.BoolVar(&o.json, "json", false, "print the summary as one JSON object, and nothing else")
	flags.BoolVar(&o.trace, "trace", false, "print what happens, line by line; only with --seeds 1")
	flags.BoolVar(&o.listMutants, "list-mutants", false, "list the bugs that can be planted, and do nothing else")
	flags.StringVar(&o.mutant, "mutant", "", "plant the bug of this `name`, and search until the first violation; needs a\ncheckout and the go command; --seeds is, unless given, what the bug needs")
	flags.StringVar(&o.planted, "planted", "", "the mutant that this binary is")
	flags.Lookup("planted").Hidden = true
}

// validate says what is wrong with the flags, in terms of flags.
func (o *fleaseSimOptions) validate() (err error) {
	c := &o.campaign
	if c.Config.Kind, err = fleasesim.ParseKind(o.kind); err != nil {
		return err
	}
	if c.Config.Faults, err = fleasesim.ParseMix(o.faults); err != nil {
		return err
	}
	switch {
	case c.Seeds < 1 || c.Parallel < 1 || c.StopAfter < 1:
		return errors.New("--seeds, --parallel and --stop-after: want at least 1")
	case c.Parallel > maxParallel:
		return fmt.Errorf("--parallel %d: want at most %d; more than one world per processor gains nothing", c.Parallel, maxParallel)
	case o.trace && c.Seeds != 1:
		return errors.New("--trace shows one world: add --seeds 1, and --seed to choose it")
	case o.trace && o.json:
		return errors.New("--trace and --json cannot share the output: choose one")
	case o.explore < 0 || o.explore > 100 || o.detours < -1 || o.detours > 100:
		return fmt.Errorf("--explore %d --detours %d: want at most 100 of each", o.explore, o.detours)
	}
	return c.Config.Validate()
}

// run does what valid flags ask for.
func (o *fleaseSimOptions) run(cmd *cobra.Command) error {
	ctx, out := cmd.Context(), newScreen(cmd.OutOrStdout())
	switch {
	case o.listMutants:
		return listFleaseMutants(out)
	case o.mutant != "":
		return o.runMutant(cmd)
	case o.explore > 0:
		return o.runExplorer(ctx, out)
	case o.trace:
		return o.runTrace(out)
	}
	return o.runCampaign(ctx, out)
}

func (o *fleaseSimOptions) runTrace(out io.Writer) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	r := fleasesim.Run(o.campaign.Config, o.campaign.First, buffered)
	verdict := good("no violation")
	if r.Violation != nil {
		verdict = bad(r.Violation.String())
	}
	_, _ = fmt.Fprintf(buffered, "\n%s in the world of seed %d (%v)\n%v simulated, %s events, %s messages\n",
		verdict, r.Seed, r.Kind, r.Simulated, grouped(r.Events), grouped(r.Messages)) // Flush has the error
	if err := buffered.Flush(); err != nil {
		return failed{fmt.Errorf("writing the trace: %w", err)}
	}
	return o.status(r.Violation != nil, false)
}

func (o *fleaseSimOptions) runCampaign(ctx context.Context, out screen) error {
	collectLess()
	s, err := o.campaign.Run(ctx)
	if err != nil {
		return err
	}
	text := o.summary(s, out.width)
	if o.json {
		text = jsonText(o.report(s))
	}
	if err := write(out, text); err != nil {
		return err
	}
	return o.status(len(s.Failures) > 0, ctx.Err() != nil)
}

// status is the exit status that a search amounts to.
func (o *fleaseSimOptions) status(violated, interrupted bool) error {
	switch {
	case violated:
		return statusViolated
	case interrupted:
		return statusInterrupted
	case o.planted != "":
		return statusSurvived
	}
	return nil
}

// summary is the report for people.
func (o *fleaseSimOptions) summary(s *fleasesim.Summary, width int) string {
	var b strings.Builder
	for _, section := range []struct {
		title string
		of    map[string]uint64
	}{{"Worlds", s.Kinds}, {"Checks, by invariant", s.Checks}, {"Faults that struck", s.Faults}, {"What machines said", s.Notices}} {
		var entries []entry
		for _, name := range slices.Sorted(maps.Keys(section.of)) {
			entries = append(entries, entry{name, grouped(section.of[name])})
		}
		fmt.Fprintf(&b, "%s\n%s\n", heading(section.title), grid(entries, width))
	}
	fmt.Fprintf(&b, "%.1f h simulated in %.1f s, %s events, %s events/s, trace hash %s\n",
		s.Simulated.Hours(), s.Elapsed.Seconds(), grouped(s.Events), grouped(uint64(s.Speed())), hashText(s.Hash))
	for _, f := range s.Failures[:min(len(s.Failures), maxShown)] {
		fmt.Fprintf(&b, "%s  seed %d, %s, at %v\n%s\n  replay: %s\n\n", bad("VIOLATION"), f.Seed, f.Invariant, f.At, indented(f.Text), o.replay(f.Seed))
	}
	verdict := good("no violation")
	if n := len(s.Failures); n > 0 {
		verdict = bad(counted(n, "violation"))
	}
	fmt.Fprintf(&b, "%s in %s\n", verdict, counted(s.Seeds, "world"))
	return b.String()
}
