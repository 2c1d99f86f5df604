// Package chaoscmd has the subcommand "chaos": real processes, real faults.
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
process of its own on a host of its own, and injects faults: processes are killed and
stopped, the leader among them; hosts are cut off, in both directions or in one; packets are
delayed, lost, duplicated or reordered, or the bandwidth is limited.

Faults come in storms, in which they overlap. After each storm all faults are healed, and
then every key must have an owner within a bound. Servers record which keys they hold, and
callers record their tables, losses and replies. At the end these records are checked
against the guarantees of Leasehold:

  I1  no two servers held a key at the same time; registers are linearizable
  I2  generations rose, and none was granted twice
  I4  callers received all losses of state in time, and no false ones
  I5  all callers had the same table at the same LSN, and none went back
  I6  after each storm every key had an owner within (leader TTL + lease) x drift + 2
      round trips, and --slack on top of that for the computer
  I11 an outage of managers, store or network alone ended no lease and lost nothing

Every third storm is an outage: one fault, from 5 s to 5 min long, of managers, store or
network and not of a server. It begins when no key has changed its owner for a while.

With --store etcd each manager is a member of an etcd cluster, with external the etcd
cluster has three more processes, and with flease the tables are only in memory; "all" runs
one after the other, until there is a violation.

The hosts are network namespaces, and this process forwards the packets between them. That
requires Linux, and root or a system that permits user namespaces and access to
/dev/net/tun, as most do. Processes, files and namespaces are removed at the end, unless
there was a violation or a failure: then a directory has the logs, the histories, the faults
and the report, and a README that describes them. The build of --other oldest is kept in the
user's cache directory.

The faults, their victims and times are drawn from --seed. The result also depends on how
the system schedules processes, so the same seed does not always reproduce a violation.

With --leases-off servers ignore the end of their leases. Such a run must fail; otherwise
the checks are defective.

A run takes about 15 seconds more than --for: for the end of the last storm, and until
callers have received its losses. Ctrl-C ends it early, with a report of the run so far.

Exit status: 0 no violation; 1 a violation, or a crashed process; 2 the run or its check
failed; 130 interrupted. "go run" replaces all of these by 1: build the command to
distinguish them.`

const chaosExample = `  leasehold-lab chaos --for 30s --seed 1
  leasehold-lab chaos --store all --faults 200
  leasehold-lab chaos --kinds help                  # lists the kinds of faults
  leasehold-lab chaos --store flease --kinds leader-pause-long,leader-kill --for 5m
  leasehold-lab chaos --leases-off --for 20s        # must fail`

// soakFrom is the minimum duration of a run that checks for growth over time.
const soakFrom = 30 * time.Minute

// defaultFor is the duration of a run without --for and --faults.
const defaultFor = 30 * time.Second

func New() *cobra.Command {
	o := &campaign.Campaign{Config: chaos.DefaultConfig(), Version: daemon.BuildVersion()}
	cmd := &cobra.Command{
		Use:     "chaos",
		Short:   "Inject faults into a real cluster on this computer, and check its guarantees",
		Long:    chaosHelp,
		Example: chaosExample,
		Args:    func(cmd *cobra.Command, args []string) error { return chaosArguments(o.Drift, cmd, args) },
	}
	flags, c := cmd.Flags(), &o.Config
	flags.SortFlags = false
	flags.DurationVar(&c.For, "for", 0, "time in which storms begin, with each store (default 30s, or no limit with --faults)")
	flags.IntVar(&c.Faults, "faults", 0, "number of faults, with each store (default no limit)")
	flags.Uint64Var(&c.Seed, "seed", 0, "seed of the faults, their victims and times (default random)")
	flags.StringVar(&o.Store, "store", string(c.Shape), "store of the managers: etcd, external, flease, cluster (managers in the servers), or all one after the other")
	flags.StringSliceVar(&c.Kinds, "kinds", nil, "only these `faults`; \"help\" lists all")
	flags.DurationVar(&c.Outage, "outage", 0, "duration of each outage of all managers or of the store, 5s or more (default random: 5s to 5m,\nmostly short, and at most a third of the rest of --for)")
	flags.IntVar(&c.Owners, "owners", c.Owners, "number of servers")
	flags.IntVar(&c.Callers, "callers", c.Callers, "number of callers")
	flags.DurationVar(&c.Lease, "lease", c.Lease, "duration of leases")
	flags.DurationVar(&c.TTL, "ttl", c.TTL, "leader TTL: time for which a leader acts without renewing its leadership")
	flags.DurationVar(&c.Slack, "slack", c.Slack, "extra time for all bounds, on a loaded computer")
	flags.StringVar(&c.Other, "other", "", "another build of this `program`, for upgrades and downgrades; \"oldest\" is\nthat of the oldest compatible commit, which requires a checkout\nwith its history and the go command")
	flags.StringVar(&o.Drift, "drift", "", "run clocks at different rates, within the drift bound, or with --drift=beyond beyond it,\nand set wall clocks; requires a checkout and the go command")
	flags.Lookup("drift").NoOptDefVal = campaign.DriftWithin
	flags.BoolVar(&o.Failpoints, "failpoints", false, "kill and stop processes at failpoints; requires a checkout and the go command")
	flags.BoolVar(&c.Soak, "soak", false, "exclude one process of each kind from faults that end it, and fail if memory, goroutines or\ndescriptors of any process grow with time (default with --for 30m and more)")
	flags.BoolVar(&c.LeasesOff, "leases-off", false, "break the servers on purpose, to test the checks")
	flags.BoolVar(&o.JSON, "json", false, "print only the report, as JSON, one object for each store")
	flags.StringVar(&o.Report, "report", "", "also write that JSON to a `file`")
	flags.StringVar(&c.Dir, "dir", "", "`directory` for data, logs and histories (default a temporary one)")
	flags.BoolVar(&c.Keep, "keep", false, "keep the directory in any case")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runChaos(cmd, o) }
	for flag, values := range map[string][]string{
		"kinds": campaign.KindNames(),
		"drift": {campaign.DriftWithin, campaign.DriftBeyond},
		"store": {"etcd", "external", "flease", "cluster", campaign.AllStores},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// runChaos completes the configuration, and runs.
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
			return cli.Status(exit) // the child has printed the reason
		}
		return nil
	}
	err = o.Run(cmd.Context(), out, errs)
	if _, ended := errors.AsType[cli.Status](err); err == nil || ended {
		return err
	}
	return cli.Fail(err)
}

// unset returns an error for flags with an empty value, such as those of a script with an empty variable: the
// default may not be intended.
func unset(flags *pflag.FlagSet) error {
	var found error
	flags.Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Name == "for" && value == "0s":
			found = errors.New("--for 0s: want a time above 0")
		case f.Name == "faults" && value == "0":
			found = errors.New("--faults 0: want a number above 0")
		case f.Name == "kinds" && slices.Contains(strings.Split(strings.Trim(value, "[]"), ","), ""):
			found = errors.New("--kinds: a name is empty; --kinds help lists the faults")
		case value == "" && f.Name != "kinds":
			found = fmt.Errorf("--%s is empty: omit it, or set a value", f.Name)
		}
	})
	return found
}

// chaosArguments rejects arguments, with a hint for "--drift beyond".
func chaosArguments(drift string, cmd *cobra.Command, args []string) error {
	if len(args) > 0 && drift != "" {
		if args[0] == campaign.DriftWithin || args[0] == campaign.DriftBeyond {
			return fmt.Errorf("--drift %s: write --drift=%s", args[0], args[0])
		}
		return fmt.Errorf("--drift %s: write --drift, which means --drift=within, or --drift=beyond, without further arguments", args[0])
	}
	return cli.NoArguments(cmd, args)
}
