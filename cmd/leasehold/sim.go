package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/mutant"
	"github.com/leasehold-dev/leasehold/internal/sim"
)

// simOptions is what the flags of sim say.
type simOptions struct {
	config sim.Config
	world  *pflag.FlagSet // the flags that shape a world; a replay repeats them

	first     uint64
	seeds     int
	parallel  int
	stopAfter int

	json  bool
	trace bool

	explore exploreOptions

	listMutants bool
	mutant      string // to plant
	planted     string // the mutant that this very binary is
}

// maxParallel bounds the worlds at a time. More than one per processor gains
// nothing, and each needs its memory.
const maxParallel = 1024

const simHelp = `Runs the real protocol machines as whole clusters in virtual time: managers,
owners, lookups and a store, on clocks that drift, over a network that loses,
repeats and reorders, with crashes, pauses, failovers and hostile messages.
After every event it checks what must always hold; for example I1: at any
instant at most one server believes that it owns a key. First there are faults,
for --duration; then all of them end, and the cluster must recover by itself
within its bound.

Each such world is made from a seed. The same seed, flags and code give the same
world, event by event, on any computer, so a violation is printed together with
the one command that replays it with a readable trace.

Faults strike at random, as often as --faults says. It is "default", which has
every kind; "none"; or kinds with weights, such as owner-crash=3,loss=1. A list
after "default," changes the default: default,hostile=0 leaves one out. The
kinds are:

%s
The summary lists the interesting branches of the machines, with how often they
were taken. Those that were never taken were not tested by this run.

With --explore it tries instead all that can happen to two managers with a store and
two owners within so many steps, with so many --detours from what would happen if
nothing were wrong: a message overtakes others, arrives twice, is late or lost, the
store does not answer, a process dies or stands still. A violation is printed with
the way to it, and with the command that shows it again.

Exit status: 0 no violation; 1 violations; 2 it could not be done as asked;
3 a bug was planted with --mutant and nothing noticed it; 130 interrupted
before a violation was found. (Beware of "go run": it makes them all 1.)`

const simExample = `  leasehold sim                                     # the default: 1000 worlds
  leasehold sim --seeds 100000 --owners 5           # more worlds, larger ones
  leasehold sim --faults clock-rate=1,owner-pause=1 # only these faults
  leasehold sim --seed 17 --seeds 1 --trace         # what happens in world 17
  leasehold sim --leases-off --seeds 100            # do the checks notice?
  leasehold sim --explore 60 --detours 1            # everything that can happen
  leasehold sim --mutant "$(leasehold sim --list-mutants | head -n 1)"`

func newSimCommand() *cobra.Command {
	o := &simOptions{}
	cmd := &cobra.Command{
		Use:     "sim",
		Short:   "Search for violations of the protocol in simulated clusters",
		Long:    fmt.Sprintf(simHelp, faultKinds()),
		Example: simExample,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func faultKinds() string {
	var kinds []entry
	for _, name := range sim.FaultNames() {
		kinds = append(kinds, entry{name: name})
	}
	return grid(kinds, usualWidth)
}

// addFlags is in the order in which the help lists them.
func (o *simOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.seeds, "seeds", 1000, "how many worlds to run, one for each seed")
	flags.Uint64Var(&o.first, "seed", 1, "the first seed")
	o.world = o.worldFlags()
	flags.AddFlagSet(o.world)
	flags.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "how many worlds to run at a time; changes only the speed")
	flags.Lookup("parallel").DefValue = "all processors" // the same help everywhere
	flags.IntVar(&o.stopAfter, "stop-after", 100, "stop after so many violations")
	o.explore.addFlags(flags)
	flags.BoolVar(&o.json, "json", false, "print the summary as one JSON object, and nothing else")
	flags.BoolVar(&o.trace, "trace", false, "print what happens, line by line; only with --seeds 1")
	flags.BoolVar(&o.listMutants, "list-mutants", false, "list the bugs that can be planted, and do nothing else")
	flags.StringVar(&o.mutant, "mutant", "", "plant the bug of this `name`, and search until the first violation; needs a\ncheckout and the go command; --seeds is, unless given, what the bug needs")
	flags.StringVar(&o.planted, "planted", "", "the mutant that this binary is")
	flags.Lookup("planted").Hidden = true
	// The names are those of flags just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("mutant", completeMutant)
	_ = cmd.RegisterFlagCompletionFunc("faults", cobra.FixedCompletions(
		append([]string{"default", "none"}, sim.FaultNames()...), cobra.ShellCompDirectiveNoFileComp))
}

// worldFlags are the flags that shape a world: together with the seed they say
// all that happens in it.
func (o *simOptions) worldFlags() *pflag.FlagSet {
	var usual sim.Config
	if err := usual.Validate(); err != nil {
		panic(err) // the zero Config is documented to be valid
	}
	c := &o.config
	flags := pflag.NewFlagSet("world", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.DurationVar(&c.Duration, "duration", usual.Duration, "how long faults go on in each world, in its own time")
	flags.IntVar(&c.Managers, "managers", usual.Managers, "managers in each world")
	flags.IntVar(&c.Owners, "owners", usual.Owners, "computers that run owners in each world")
	flags.IntVar(&c.Lookups, "lookups", usual.Lookups, "lookups in each world")
	flags.IntVar(&c.Namespaces, "namespaces", usual.Namespaces, "namespaces in each world, 1 or 2; 0 lets the seed choose")
	flags.Var(&mixFlag{mix: &c.Faults, text: usual.Faults.String()}, "faults", "a `mix` of faults: what strikes, and how often")
	flags.BoolVar(&c.Diskless, "diskless", false, "managers without a store: they agree among themselves who leads, and ask the\nowners what there is; then --managers is 3, unless given")
	flags.BoolVar(&c.Agents, "agents", false, "owners answer for other processes, which rely for a time on what they were told,\nas \"leasehold agent\" does; no state is moved")
	flags.BoolVar(&c.LeasesOff, "leases-off", false, "break the world on purpose, to see that the checks notice:\nowners believe in their leases for ever")
	flags.BoolVar(&c.EqualClocks, "equal-clocks", false, "break the world on purpose, to see that the checks notice:\nall clocks run at the same rate (which shows as branches never taken)")
	return flags
}

// A mixFlag is a fault mix as a flag. It remembers how the user wrote it, which
// is shorter than what it means.
type mixFlag struct {
	mix  *sim.Mix
	text string
}

func (f *mixFlag) Set(s string) error {
	mix, err := sim.ParseMix(s)
	if err != nil {
		return err
	}
	*f.mix, f.text = mix, mix.String()
	if compact := strings.Join(strings.Fields(s), ""); len(compact) < len(f.text) {
		f.text = compact
	}
	return nil
}

func (f *mixFlag) String() string { return f.text }
func (*mixFlag) Type() string     { return "string" }

// validate says what is wrong with the flags, in terms of flags.
func (o *simOptions) validate() error {
	if o.config.Diskless && !o.world.Changed("managers") {
		o.config.Managers = 0 // its own default
		if err := o.config.Validate(); err != nil {
			return err
		}
		o.world.Lookup("managers").DefValue = strconv.Itoa(o.config.Managers)
	}
	for _, size := range []struct {
		flag  string
		value int
	}{
		{"seeds", o.seeds},
		{"parallel", o.parallel},
		{"stop-after", o.stopAfter},
		{"managers", o.config.Managers},
		{"owners", o.config.Owners},
		{"lookups", o.config.Lookups},
	} {
		if size.value < 1 {
			return fmt.Errorf("--%s %d: want at least 1", size.flag, size.value)
		}
	}
	switch {
	case o.parallel > maxParallel:
		return fmt.Errorf("--parallel %d: want at most %d; more than one world per processor gains nothing", o.parallel, maxParallel)
	case o.trace && o.seeds != 1:
		return errors.New("--trace shows one world: add --seeds 1, and --seed to choose it")
	case o.trace && o.json:
		return errors.New("--trace and --json cannot share the output: choose one")
	case o.explore.depth > 0 && o.trace:
		return errors.New("--trace shows a world, and --explore has none: a violation is printed step by step anyway")
	case o.config.Duration == 0:
		return errors.New("--duration 0s: want at least 1s; for a world without faults use --faults none")
	}
	if err := o.explore.validate(); err != nil {
		return err
	}
	return o.config.Validate()
}

// run does what valid flags ask for.
func (o *simOptions) run(cmd *cobra.Command) error {
	ctx, out := cmd.Context(), newScreen(cmd.OutOrStdout())
	switch {
	case o.listMutants:
		return listMutants(out)
	case o.mutant != "":
		return o.runMutant(cmd)
	case o.explore.depth > 0:
		return o.runExplorer(ctx, out, newScreen(cmd.ErrOrStderr()))
	case o.trace:
		return o.runTrace(ctx, out)
	}
	return o.runCampaign(ctx, out, newScreen(cmd.ErrOrStderr()))
}

// runCampaign runs many worlds and says how it went.
func (o *simOptions) runCampaign(ctx context.Context, out, progressTo screen) error {
	collectLess()
	progress := newProgress(progressTo, o)
	progress.start()
	summary, err := sim.Campaign{
		Config: o.config, First: o.first, Seeds: o.seeds, StopAfter: o.stopAfter,
		Parallel: min(o.parallel, o.seeds), Progress: progress.report,
	}.Run(ctx)
	progress.stop()
	if err != nil {
		return err
	}
	r := o.report(summary, ctx.Err() != nil)
	text := r.text(out.width)
	if o.json {
		text = r.json()
	}
	if err := write(out, text); err != nil {
		return err
	}
	if r.status() == statusSurvived {
		progressTo.say("%s", o.survived())
	}
	if r.status() == statusOK {
		return nil
	}
	return r.status()
}

// collectLess lets the heap grow to five times of what is alive before it is
// collected. Worlds are small, short-lived and make much garbage: at the usual
// setting a third of the time went into collecting it. Whoever sets GOGC knows
// better.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// replay is the command that shows what happened in the world of a seed.
func (o *simOptions) replay(seed uint64) string {
	words := []string{"go run ./cmd/leasehold sim"}
	if o.planted != "" {
		words = append(words, "--mutant", o.planted)
	}
	words = append(words, fmt.Sprintf("--seed %d --seeds 1 --trace", seed))
	o.world.VisitAll(func(f *pflag.Flag) {
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

func listMutants(out io.Writer) error {
	var names strings.Builder
	for _, m := range mutant.All() {
		names.WriteString(m.Name + "\n")
	}
	return write(out, names.String())
}
