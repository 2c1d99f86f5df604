package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/chaos"
	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
	"github.com/leasehold-dev/leasehold/internal/chaos/drifting"
	"github.com/leasehold-dev/leasehold/internal/chaos/elder"
	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
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

With --store etcd the managers keep their tables themselves, with external in an etcd
cluster of three more processes, and with flease nowhere but in memory; "all" is one
after the other.

The hosts are network namespaces, and this process passes on what goes from one to the
other. That takes Linux, and root or a system that lets its users have namespaces of
their own and open /dev/net/tun, as most do. Nothing is left behind, neither processes nor files
nor namespaces, unless something was violated: then a directory has the logs, the
histories, the faults and the report.

What is done to whom and when is drawn from --seed. What comes of it also depends on how
the system schedules processes, so that the same seed may find something once and
not again.

With --leases-off servers ignore that their leases have ended. A run that does not
fail then has checked nothing.

Exit status: 0 all went well; 1 something was violated; 2 it could not be done; 130
interrupted.`

const chaosExample = `  leasehold chaos --for 30s --seed 1
  leasehold chaos --store all --faults 200
  leasehold chaos --store flease --kinds leader-pause-long,leader-kill --for 5m
  leasehold chaos --leases-off --for 20s        # must fail`

// chaosOptions is what the flags of chaos say.
type chaosOptions struct {
	config chaos.Config
	store  string
	drift  string
	points bool
	json   bool
}

// soakFrom is how long a run takes at least that looks for what grows with time.
const soakFrom = 30 * time.Minute

func newChaosCommand() *cobra.Command {
	o := &chaosOptions{config: chaos.DefaultConfig()}
	cmd := &cobra.Command{
		Use:     "chaos",
		Short:   "Break a real cluster on this computer, and check what it promises",
		Long:    chaosHelp,
		Example: chaosExample,
		Args:    noArguments,
	}
	flags, c := cmd.Flags(), &o.config
	flags.SortFlags = false
	flags.DurationVar(&c.For, "for", 0, "for how long storms begin, with each store (default 30s, or until there were --faults)")
	flags.IntVar(&c.Faults, "faults", 0, "how many faults are enough, with each store (default as many as there is time for)")
	flags.Uint64Var(&c.Seed, "seed", 0, "what is done to whom and when (default another each time)")
	flags.StringVar(&o.store, "store", string(c.Shape), "where managers have their tables: etcd, external, flease, or all one after the other")
	flags.StringSliceVar(&c.Kinds, "kinds", nil, "only these `faults`; a wrong one is answered with all there are")
	flags.IntVar(&c.Owners, "owners", c.Owners, "how many servers")
	flags.IntVar(&c.Callers, "callers", c.Callers, "how many callers")
	flags.DurationVar(&c.Lease, "lease", c.Lease, "how long leases last")
	flags.DurationVar(&c.TTL, "ttl", c.TTL, "for how long a leader acts without renewing its leadership")
	flags.DurationVar(&c.Slack, "slack", c.Slack, "how much later than promised things may happen, for want of processors")
	flags.StringVar(&c.Other, "other", "", "another build of this `program`, to which processes are upgraded, and back; \"oldest\" is\nthat of the oldest commit with which this one has to get along, and needs a checkout\nwith its history and the go command")
	flags.StringVar(&o.drift, "drift", "", "have clocks run at different rates, within the drift bound, or with --drift=beyond beyond it,\nand wall clocks be set; needs a checkout and the go command")
	flags.Lookup("drift").NoOptDefVal = driftWithin
	flags.BoolVar(&o.points, "failpoints", false, "have processes die and stand still at failpoints; needs a checkout and the go command")
	flags.BoolVar(&c.Soak, "soak", false, "spare one process of each kind, and fail if memory, goroutines or descriptors of any\nprocess grow with time (default with --for 30m and more)")
	flags.BoolVar(&c.LeasesOff, "leases-off", false, "break the servers on purpose, to see that the checks notice")
	flags.BoolVar(&o.json, "json", false, "print what came of it as JSON, one object for each store, and nothing else")
	flags.StringVar(&c.Dir, "dir", "", "the `directory` for data, logs and histories (default a temporary one)")
	flags.BoolVar(&c.Keep, "keep", false, "keep it, whatever comes of it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		program, err := os.Executable()
		if err != nil {
			return failed{err}
		}
		c.Program = program
		if !flags.Changed("seed") {
			c.Seed = uint64(time.Now().UnixNano())
		}
		if c.For == 0 && c.Faults == 0 {
			c.For = unattended
		}
		if !flags.Changed("soak") {
			c.Soak = c.For >= soakFrom
		}
		if lan.Rootless() {
			return rootless(cmd, program, os.Args[1:])
		}
		return o.run(cmd)
	}
	_ = cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions([]string{"etcd", "external", "flease", "all"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// rootless runs the command again, where its user is root. That is so only once.
func rootless(cmd *cobra.Command, program string, args []string) error {
	again := lan.Again(cmd.Context(), program, args...)
	again.Stdin, again.Stdout, again.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err := again.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exited) && exited.ExitCode() > 0:
		return status(exited.ExitCode()) // it has said why
	default:
		return failed{fmt.Errorf("hosts are network namespaces; they take root, or a system that lets its users have user namespaces: %w", err)}
	}
}

// oldestBuild is what --other may say instead of a program.
const oldestBuild = "oldest"

// What --drift may say.
const (
	driftWithin = "within"
	driftBeyond = "beyond"
)

// shapes are those that --store names.
func (o *chaosOptions) shapes() []cluster.Shape {
	if o.store == "all" {
		return cluster.Shapes()
	}
	return []cluster.Shape{cluster.Shape(o.store)}
}

// build makes the other builds that a run needs, in a directory.
func (o *chaosOptions) build(ctx context.Context, dir string) error {
	if o.drift != "" && o.drift != driftWithin && o.drift != driftBeyond {
		return fmt.Errorf("--drift=%s: want within or beyond", o.drift)
	}
	c := &o.config
	c.Beyond = o.drift == driftBeyond
	if o.drift != "" || o.points {
		var tags []string
		if o.points {
			tags = []string{drifting.PointsTag}
		}
		program, err := drifting.Build(ctx, dir, tags...)
		if err != nil {
			return failed{err}
		}
		c.Program = program
		if o.drift != "" {
			c.Drifting = program
		}
		if o.points {
			if c.Points, err = drifting.Points(ctx, program); err != nil {
				return failed{err}
			}
		}
	}
	if c.Other == oldestBuild {
		old, err := elder.Oldest(ctx, ".")
		if err != nil {
			return failed{err}
		}
		c.Other, c.Builds = old.Program, []string{buildVersion(), "commit " + old.Commit}
	}
	return nil
}

// run runs one cluster after the other, and says what came of each.
func (o *chaosOptions) run(cmd *cobra.Command) error {
	out, errs := newScreen(cmd.OutOrStdout()), newScreen(cmd.ErrOrStderr())
	progress := newChaosProgress(errs, o.json)
	dir := o.config.Dir
	built, err := os.MkdirTemp("", "leasehold-built-")
	if err != nil {
		return failed{err}
	}
	defer os.RemoveAll(built) //nolint:errcheck // there is nobody left to tell
	if err := o.build(cmd.Context(), built); err != nil {
		return err
	}
	for _, shape := range o.shapes() {
		c := o.config
		c.Shape = shape
		if err := c.Validate(); err != nil {
			return err
		}
		if dir != "" && o.store == "all" {
			c.Dir = dir + string(os.PathSeparator) + string(shape)
		}
		r, err := chaos.Run(cmd.Context(), c, progress.report)
		progress.stop()
		text := chaosText(&r)
		if o.json {
			text = jsonText(r)
		}
		if err == nil {
			err = write(out, text)
		} else {
			err = failed{kept(err, r.Kept)}
		}
		switch {
		case err != nil:
			return err
		case len(r.Violations) > 0:
			errs.say("leasehold: %s; %s\n", bad("VIOLATION"), "to do it again: "+r.Replay)
			return statusViolated
		case r.Interrupted:
			return statusInterrupted
		}
	}
	return nil
}

func kept(err error, dir string) error {
	if dir == "" {
		return err
	}
	return fmt.Errorf("%w\nLogs and histories are in %s", err, dir)
}

// chaosText is what came of a run, for people.
func chaosText(r *chaos.Report) string {
	rec := &r.Recoveries
	lines := []entry{
		{"run", fmt.Sprintf("store %s, seed %d, %.1f s, %s", r.Store, r.Seed, r.Seconds, counted(r.Storms, "storm"))},
		{"faults", fmt.Sprintf("%s: %s", counted(r.Faults, "fault"), byKind(r.ByKind))},
		{"recovery", fmt.Sprintf("every key had an owner within %.0f ms after half of the storms, %.0f ms after 99 %%, %.0f ms after all; %d of %d within B, which is %.0f ms",
			rec.Median, rec.P99, rec.Max, rec.WithinBound, rec.Count, rec.BoundMillis)},
		{"checked", fmt.Sprintf("%s, %s (I1, I2), %s to be told of losses, %d of them late, and %s of silence (I4), %s (I5), %s of registers under %s (linearizable; %d undecided)",
			counted(r.Checked.Tenures, "tenure"), counted(r.Checked.Generations, "generation"), counted(r.Checked.Losses, "occasion"),
			r.Checked.Late, counted(r.Checked.Cuts, "time"),
			counted(r.Checked.Tables, "table"), counted(r.Checked.Calls, "answer"), counted(r.Checked.Histories, "lease"), r.Checked.Undecided)},
		{"packets", fmt.Sprintf("%s passed, %s delayed, %s repeated, %s dropped",
			grouped(r.Packets.Passed), grouped(r.Packets.Delayed), grouped(r.Packets.Duplicated), grouped(r.Packets.Dropped))},
	}
	if len(r.Builds) > 1 {
		lines = append(lines, entry{"builds", strings.Join(r.Builds, "; ")})
	}
	if rec.Forgotten > 0 {
		lines = append(lines, entry{"", fmt.Sprintf("%d times most managers had lost their memory: then B is %.0f ms", rec.Forgotten, rec.WiderMillis)})
	}
	if r.Revived+r.Created > 0 {
		lines = append(lines, entry{"also", fmt.Sprintf("processes that ended by themselves and were started again: %d; times that the namespace was gone with all managers and was created anew: %d",
			r.Revived, r.Created)})
	}
	if r.Excused+r.Noticed > 0 {
		lines = append(lines, entry{"clocks", fmt.Sprintf("owners found their clocks too slow and dropped their leases %d times; what clocks beyond the bound are to blame for: %d times (I1, I4, I6)",
			r.Noticed, r.Excused)})
	}
	if c := r.Checked; c.Writes > 0 {
		lines = append(lines, entry{"fence", fmt.Sprintf("%s accepted, %d refused (I9)", counted(c.Writes, "write"), c.Refused)})
	}
	if len(r.Vitals) > 0 {
		lines = append(lines, entry{"vitals", vitalsText(r)})
	}
	lines = append(lines, entry{"violations", violationsText(r)})
	if r.Kept != "" {
		lines = append(lines, entry{"kept", r.Kept})
	}
	return heading("Chaos") + "\n" + facts(lines)
}

// vitalsText is what processes took to live, in the second and in the last quarter of their
// lives, each with the most that it may have been.
func vitalsText(r *chaos.Report) string {
	lines := []string{fmt.Sprintf("medians of the second and the last quarter, and what was allowed; %d other processes lived too short to say", r.ShortLives)}
	for _, c := range r.Vitals {
		scale, unit := 1.0, ""
		if strings.HasPrefix(c.What, "bytes") {
			scale, unit = 1<<20, " MiB"
		}
		line := fmt.Sprintf("%-6s %-16s %8.1f%s %8.1f%s (%.1f) of %s", c.Process, strings.TrimPrefix(c.What, "bytes of "),
			c.Early/scale, unit, c.Late/scale, unit, c.Allowed/scale, counted(c.Samples, "sample"))
		if !c.Flat() {
			line = bad(line)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func byKind(faults map[string]int) string {
	var words []string
	for name, n := range faults {
		words = append(words, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func violationsText(r *chaos.Report) string {
	if len(r.Violations) == 0 {
		return "none"
	}
	var lines []string
	for _, v := range r.Violations {
		lines = append(lines, bad(v.String()))
	}
	return strings.Join(lines, "\n")
}
