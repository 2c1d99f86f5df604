package policycmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/policylab"
	"github.com/leasehold-dev/leasehold/lab/policylab/figure"
	"github.com/leasehold-dev/leasehold/partition"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// tryOptions has the flags of "policy try".
type tryOptions struct {
	flags   *pflag.FlagSet
	config  policylab.Config
	options partition.Options

	policies []string
	start    string
	weights  string
	joins    []string
	leaves   []string
	workload workloadOptions

	json   bool
	series bool // in the JSON output
	plot   string
}

const tryHelp = `Tries policies against a workload, offline: any number of owners and any duration,
in seconds. A policy has the same input as in production: the owners' reports of the
keys that they hold, in cells, with their hottest keys, with the noise of counting,
smoothed, and without ranges that have just moved. The output shows the true load.

Time is divided into periods. At the start of one, the policy decides, from the
reports of the previous one; in periods 0 and 1 there are no reports.

MAX/MEAN is the load of the most loaded owner divided by the mean, per weight. No
policy brings it below the floor, which is the share of the hottest key alone: a key
has one owner. MAX/BEST divides each owner's load by the mean or, if that is more,
by its own hottest key: it shows whether the other load is balanced.

With the workload zipf the hottest of N keys has 1/(1 + 1/2^alpha + ... + 1/N^alpha)
of all load, so --keys determines the floor: with alpha 0.8 and a billion keys it is
1 up to 311 owners, and 1.61 for 500. Figure 10 of PRS has no number of keys. It
begins with several servers above twice the mean, which requires fewer keys: with a
million keys 4 of 250 are above.

The workload recorded reads --file, with one record per line, as JSON:

  {"period": 0, "key": "4f21c3aa00000000", "rate": 130.5}
  {"period": 0, "range": "8000000000000000-end", "rate": 2000}

or as CSV, with the header period,keys,rate. Lines are sorted by period, and a
missing period is equal to the previous one. "leasehold-lab policy list" lists
policies and workloads.

With --json it prints an object with the result: maxOverMean, periodsToTarget,
keysMovedShare, movesAfterStable, ranges and others, of the first policy. With
several policies, "runs" has the results of all of them. With --series each has the
values of each period.

Several policies, separated by commas, are compared. --plot draws the values over
time, and the load of all servers that are ever above twice the mean, like figure 10
of PRS.`

const tryExample = `  leasehold-lab policy try                                   # balanced, zipf, 250 owners
  leasehold-lab policy try --workload hot --hot 0.3 --owners 20
  leasehold-lab policy try --policy balanced,adaptive,consistent --owners 500 --plot fig10.svg
  leasehold-lab policy try --owners 100 --join 20@10 --leave 20@30
  leasehold-lab policy try --workload recorded --file loads.jsonl --json`

func newTryCommand() *cobra.Command {
	o := &tryOptions{config: policylab.Usual()}
	cmd := &cobra.Command{
		Use:     "try",
		Short:   "Try policies against a workload, offline",
		Long:    tryHelp,
		Example: tryExample,
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	return cmd
}

// addFlags adds the flags in the order of the help.
func (o *tryOptions) addFlags(cmd *cobra.Command) {
	o.flags = cmd.Flags()
	f, c := o.flags, &o.config
	f.SortFlags = false
	f.StringSliceVar(&o.policies, "policy", []string{partition.DefaultName}, "`names` of the policies to try")
	f.StringVar(&o.start, "start", "", "`name` of the policy that assigns period 0 (default the tried policy)")
	f.IntVar(&o.options.VirtualNodes, "virtual-nodes", 0, "for adaptive and consistent: points per owner of weight 1 (default 64)")
	o.workload.addFlags(f)
	f.IntVar(&c.Owners, "owners", c.Owners, "number of owners")
	f.StringVar(&o.weights, "weights", "1", "`weights` of the owners, repeated, such as 1,1,2")
	f.StringSliceVar(&o.joins, "join", nil, "N owners join at a period: `N@PERIOD`; can be repeated")
	f.StringSliceVar(&o.leaves, "leave", nil, "N owners leave at a period: `N@PERIOD`; can be repeated")
	f.IntVar(&c.Periods, "periods", c.Periods, "number of periods; with diurnal, one day unless it is set")
	f.DurationVar(&c.Period, "period", c.Period, "duration of a period: time between two decisions")
	f.Float64Var(&c.Churn, "churn", c.Churn, "share of all keys that may move per minute for balance")
	f.Float64Var(&c.Target, "target", c.Target, "target of MAX/MEAN")
	f.BoolVar(&c.Noise, "noise", c.Noise, "counts of owners are random, see --requests")
	f.Float64Var(&c.Requests, "requests", c.Requests, "mean number of requests of an owner in a period")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of places of keys, noise, and leaving owners")
	f.IntVar(&c.Cells, "cells", 0, "cells in an owner's report (default 512, fewer for more than 256 owners)")
	f.IntVar(&c.MaxRanges, "max-ranges", partition.DefaultMaxRanges, "maximum number of ranges of an assignment")
	f.Float64Var(&c.MeanLoad, "mean-load", c.MeanLoad, "mean load of an owner, 0 to 1; for the plot")
	f.StringVar(&o.plot, "plot", "", "write a plot to this `file`, with the ending .png or .svg")
	f.BoolVar(&o.json, "json", false, "print JSON: an object of the first policy, with all of several in \"runs\"")
	f.BoolVar(&o.series, "series", false, "with --json: add all periods, in \"series\"")
	// The names are those of flags just added, the only thing that can go wrong.
	for _, flag := range []string{"policy", "start"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(triedPolicies(), cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(workloadNames(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *tryOptions) run(cmd *cobra.Command) error {
	policies, err := o.complete()
	if err != nil {
		return o.inFlags(err)
	}
	out, progress := console.New(cmd.OutOrStdout()), console.New(cmd.ErrOrStderr())
	var results []*policylab.Result
	var document tryDocument
	for _, p := range policies {
		started := time.Now()
		r, err := o.try(cmd.Context(), p, progress)
		if err != nil {
			return o.inFlags(err)
		}
		results = append(results, r)
		document = append(document, o.document(r, time.Since(started)))
	}
	if o.plot != "" {
		if err := o.draw(results); err != nil {
			return err
		}
	}
	text := document.text()
	if o.json {
		text = document.json(o.series)
	}
	return cli.Write(out, text)
}

// complete completes the configuration from the flags, except for the policy.
func (o *tryOptions) complete() (policies []partition.Policy, err error) {
	if o.series && !o.json {
		return nil, errors.New("--series requires --json")
	}
	if len(o.policies) == 0 || len(o.policies) > maxTried {
		return nil, fmt.Errorf("--policy has %d names, want 1 to %d", len(o.policies), maxTried)
	}
	for _, name := range o.policies {
		p, err := policyNamed("policy", name, o.options)
		if err != nil {
			return nil, err
		}
		policies = append(policies, p)
	}
	c := &o.config
	if o.start != "" {
		if c.Start, err = policyNamed("start", o.start, o.options); err != nil {
			return nil, err
		}
	}
	if c.Weights, err = parseWeights(o.weights); err != nil {
		return nil, err
	}
	if c.Changes, err = parseChanges("join", o.joins, 1); err != nil {
		return nil, err
	}
	leaves, err := parseChanges("leave", o.leaves, -1)
	if err != nil {
		return nil, err
	}
	c.Changes = append(c.Changes, leaves...)
	if o.plot != "" {
		c.KeepLoads = true
		if _, err := figure.FormatOf(o.plot); err != nil {
			return nil, fmt.Errorf("--plot %s: want a name with the ending .png or .svg", o.plot)
		}
	}
	return policies, o.completeWorkload(policies[0])
}

// maxTried limits the number of policies in a comparison.
const maxTried = 6

// completeWorkload validates the other flags first, and then creates the workload, which takes longer.
func (o *tryOptions) completeWorkload(first partition.Policy) error {
	c := &o.config
	if err := o.workload.checkFlags(o.flags); err != nil {
		return err
	}
	if o.workload.name == policylab.NameDiurnal && !o.flags.Changed("periods") && c.Period > 0 {
		c.Periods = max(c.Periods, int(min(o.workload.day/c.Period+1, policylab.MaxPeriods)))
	}
	c.Policy, c.Workload = first, policylab.Uniform() // a placeholder for Validate
	if err := c.Validate(); err != nil {
		return err
	}
	var err error
	c.Workload, err = o.workload.make(c.Seed, c.Period)
	return err
}

// inFlags converts the error of an invalid value to one with the name of its flag.
func (o *tryOptions) inFlags(err error) error {
	var wrong *leasehold.Error
	if errors.As(err, &wrong) && wrong.Kind == leasehold.ErrInvalid && o.flags.Lookup(wrong.Subject) != nil {
		return fmt.Errorf("--%s: %w", wrong.Subject, wrong.Err)
	}
	return err
}

// try tries one policy, with a progress display on a terminal.
func (o *tryOptions) try(ctx context.Context, p partition.Policy, errs console.Screen) (*policylab.Result, error) {
	c := o.config
	c.Policy = p
	if errs.Terminal {
		show, began := console.NewProgress(errs, true), time.Now()
		c.Progress = func(period int) {
			show.Report(time.Since(began), float64(period)/float64(c.Periods), fmt.Sprintf("%s: period %d of %d", p.Name(), period+1, c.Periods))
		}
		defer show.Stop()
	}
	r, err := c.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, cli.StatusInterrupted
	}
	return r, err
}

// draw writes the plot to its file atomically.
func (o *tryOptions) draw(results []*policylab.Result) error {
	format, err := figure.FormatOf(o.plot)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(o.plot), ".plot-*")
	if err != nil {
		return cli.Fail(fmt.Errorf("writing the plot: %w", err))
	}
	err = figure.Draw(file, format, results, o.config.MeanLoad)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), o.plot)
	}
	if err != nil {
		return cli.Fail(errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
