// Package chaoscmd is the subcommand "chaos": real processes, real faults.
package chaoscmd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/chaos"
	"github.com/leasehold-dev/leasehold/lab/chaos/campaign"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

const chaosHelp = `Starts a real cluster on this computer, three managers, eight servers and callers, each a
process of its own on a host of its own, and breaks it: processes are killed and
stopped, the leader among them; hosts are cut off, in both directions or in one;
packets are late, lost, repeated, reordered, or have a narrow way.

Faults come in storms, in which they overlap as they like. After each storm everything
is healed, and then every key must have an owner within a bound. All the while servers
write down which keys they believe to hold, and callers what they were told and
answered. In the end that is held against what Leasehold promises:

  I1  no two servers held a key at the same time; registers are linearizable
  I2  generations rose, and none was given twice
  I4  callers were told of all state that was lost, in time, and of none that was not
  I5  all callers had the same table at the same LSN, and none went back
  I6  after each storm every key had an owner within (leader TTL + lease) x drift + 2
      round trips, and --slack on top of that for the computer
  I11 an outage of managers, store or network alone ended no lease and lost nothing

Every third storm is an outage: one fault, from 5 s to 5 min long, that strikes managers,
store or network and no server. It begins when no key has changed hands for a while.

With --store etcd the managers keep their tables themselves, with external in an etcd
cluster of three more processes, and with flease nowhere but in memory; "all" is one
after the other, until something is violated.

The hosts are network namespaces, and this process passes on what goes from one to the
other. That takes Linux, and root or a system that lets its users have namespaces of
their own and open /dev/net/tun, as most do. Nothing is left behind, neither processes
nor files nor namespaces, unless something was violated or failed: then a directory has the
logs, the histories, the faults and the report, and a README that says what is what. What
--other oldest builds stays in the user's cache directory, for the next time.

What is done to whom and when is drawn from --seed. What comes of it also depends on how
the system schedules processes, so that the same seed may find something once and
not again.

With --leases-off servers ignore that their leases have ended. A run that does not
fail then has checked nothing.

A run takes some 15 seconds more than --for: the last storm comes to its end, and callers
get the time to hear of it. Ctrl-C ends it sooner, with a report of what was done so far.

Exit status: 0 all went well; 1 something was violated, or a process crashed; 2 it could not
be done, or not judged; 130 interrupted. Of these "go run" makes 1: build the command to tell
them apart.`

const chaosExample = `  leasehold-lab chaos --for 30s --seed 1
  leasehold-lab chaos --store all --faults 200
  leasehold-lab chaos --kinds help                  # what can be done to a cluster
  leasehold-lab chaos --store flease --kinds leader-pause-long,leader-kill --for 5m
  leasehold-lab chaos --leases-off --for 20s        # must fail`

// soakFrom is how long a run takes at least that looks for what grows with time.
const soakFrom = 30 * time.Minute

// defaultFor is for how long a run lasts if neither --for nor --faults is given.
const defaultFor = 30 * time.Second

func New() *cobra.Command {
	o := &campaign.Campaign{Config: chaos.DefaultConfig(), Version: daemon.BuildVersion()}
	cmd := &cobra.Command{
		Use:     "chaos",
		Short:   "Break a real cluster on this computer, and check what it promises",
		Long:    chaosHelp,
		Example: chaosExample,
		Args:    func(cmd *cobra.Command, args []string) error { return chaosArguments(o.Drift, cmd, args) },
	}
	flags, c := cmd.Flags(), &o.Config
	flags.SortFlags = false
	flags.DurationVar(&c.For, "for", 0, "for how long storms begin, with each store (default 30s, or until there were --faults)")
	flags.IntVar(&c.Faults, "faults", 0, "how many faults are enough, with each store (default as many as there is time for)")
	flags.Uint64Var(&c.Seed, "seed", 0, "what is done to whom and when (default another each time)")
	flags.StringVar(&o.Store, "store", string(c.Shape), "where managers have their tables: etcd, external, flease, or all one after the other")
	flags.StringSliceVar(&c.Kinds, "kinds", nil, "only these `faults`; \"help\" says which there are")
	flags.DurationVar(&c.Outage, "outage", 0, "how long each outage of all managers or of the store lasts, 5s or more (default drawn: 5s to 5m,\nmostly short, and at most a third of what is left of --for)")
	flags.IntVar(&c.Owners, "owners", c.Owners, "how many servers")
	flags.IntVar(&c.Callers, "callers", c.Callers, "how many callers")
	flags.DurationVar(&c.Lease, "lease", c.Lease, "how long leases last")
	flags.DurationVar(&c.TTL, "ttl", c.TTL, "for how long a leader acts without renewing its leadership")
	flags.DurationVar(&c.Slack, "slack", c.Slack, "how much later than promised things may happen, for want of processors")
	flags.StringVar(&c.Other, "other", "", "another build of this `program`, to which processes are upgraded, and back; \"oldest\" is\nthat of the oldest commit with which this one has to get along, and needs a checkout\nwith its history and the go command")
	flags.StringVar(&o.Drift, "drift", "", "have clocks run at different rates, within the drift bound, or with --drift=beyond beyond it,\nand wall clocks be set; needs a checkout and the go command")
	flags.Lookup("drift").NoOptDefVal = campaign.DriftWithin
	flags.BoolVar(&o.Failpoints, "failpoints", false, "have processes die and stand still at failpoints; needs a checkout and the go command")
	flags.BoolVar(&c.Soak, "soak", false, "spare one process of each kind, and fail if memory, goroutines or descriptors of any\nprocess grow with time (default with --for 30m and more)")
	flags.BoolVar(&c.LeasesOff, "leases-off", false, "break the servers on purpose, to see that the checks notice")
	flags.BoolVar(&o.JSON, "json", false, "print what came of it as JSON, one object for each store, and nothing else")
	flags.StringVar(&o.Report, "report", "", "write that JSON to a `file`, too, whatever is printed")
	flags.StringVar(&c.Dir, "dir", "", "the `directory` for data, logs and histories (default a temporary one)")
	flags.BoolVar(&c.Keep, "keep", false, "keep it, whatever comes of it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runChaos(cmd, o) }
	for flag, values := range map[string][]string{
		"kinds": campaign.KindNames(),
		"drift": {campaign.DriftWithin, campaign.DriftBeyond},
		"store": {"etcd", "external", "flease", campaign.AllStores},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// runChaos sets what depends on several flags, and runs.
func runChaos(cmd *cobra.Command, o *campaign.Campaign) error {
	out, errs, c, flags := console.New(cmd.OutOrStdout()), console.New(cmd.ErrOrStderr()), &o.Config, cmd.Flags()
	if slices.Contains(c.Kinds, campaign.KindsHelp) || slices.Contains(c.Kinds, "?") {
		return cli.Write(out, campaign.KindsText())
	}
	if err := unset(flags); err != nil {
		return err
	}
	var err error
	if c.Program, err = os.Executable(); err != nil {
		return cli.Fail(err)
	}
	if !flags.Changed("seed") {
		c.Seed = campaign.DrawSeed()
	}
	if c.For == 0 && c.Faults == 0 {
		c.For = defaultFor
	}
	if !flags.Changed("soak") {
		c.Soak = c.For >= soakFrom
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if lan.Rootless() {
		exit, err := lan.Again(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c.Program, os.Args[1:]...)
		switch {
		case err != nil:
			return cli.Fail(err)
		case exit != 0:
			return cli.Status(exit) // it has said why
		}
		return nil
	}
	err = o.Run(cmd.Context(), out, errs)
	if _, ended := errors.AsType[cli.Status](err); err == nil || ended {
		return err
	}
	return cli.Fail(err)
}

// unset finds flags that were given and say nothing, such as those of a script with an empty
// variable. What would be done without them may not be what is meant.
func unset(flags *pflag.FlagSet) error {
	var found error
	flags.Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Name == "for" && value == "0s":
			found = errors.New("--for 0s: want a time above 0")
		case f.Name == "faults" && value == "0":
			found = errors.New("--faults 0: want a number above 0")
		case f.Name == "kinds" && slices.Contains(strings.Split(strings.Trim(value, "[]"), ","), ""):
			found = errors.New("--kinds: there is a name missing; --kinds help says which faults there are")
		case value == "" && f.Name != "kinds":
			found = fmt.Errorf("--%s says nothing: leave it out, or say what it is to be", f.Name)
		}
	})
	return found
}

// chaosArguments refuses arguments. "--drift beyond" gets a hint.
func chaosArguments(drift string, cmd *cobra.Command, args []string) error {
	if len(args) > 0 && drift != "" {
		if args[0] == campaign.DriftWithin || args[0] == campaign.DriftBeyond {
			return fmt.Errorf("--drift %s: write --drift=%s", args[0], args[0])
		}
		return fmt.Errorf("--drift %s: write --drift, which is --drift=within, or --drift=beyond, and nothing after it that is not a flag", args[0])
	}
	return cli.NoArguments(cmd, args)
}
