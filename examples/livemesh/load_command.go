package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/load"
)

const loadHelp = `Generates load on the presence service, after the test application of the PRS paper:
publishers, each with a lookup of its own like a frontend, publish, change and read users, and
publish lost users again. At the end every user must have the presence that was published last.

Without --frontend each publisher connects to the servers directly, like the paper's frontends.
With --rate, latencies are measured from the scheduled time.`

// endTime is the timeout for all users to be present at the end.
const endTime = time.Minute

type loadFlags struct {
	managers, frontends []string
	publishers          int
	length              time.Duration
	json                bool
	cfg                 load.Config
}

func newLoadCommand() *cobra.Command {
	f := loadFlags{cfg: load.Default()}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Publish, change and read users, and report latencies",
		Long:  loadHelp,
		Example: `  livemesh load --for 30s
  livemesh load --frontend http://127.0.0.1:8080,http://127.0.0.1:8081 --rate 1000 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				f.cfg.Seed = rand.Uint64()
			}
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.managers, "managers", []string{"127.0.0.1:7400"}, "addresses of the managers")
	flags.StringSliceVar(&f.frontends, "frontend", nil, "URLs of frontends to send requests through (default: directly to the servers)")
	flags.IntVar(&f.publishers, "publishers", 4, "number of publishers")
	flags.IntVar(&f.cfg.Users, "users", f.cfg.Users, "users per publisher")
	flags.IntVar(&f.cfg.Callers, "callers", f.cfg.Callers, "concurrent operations per publisher")
	flags.IntVar(&f.cfg.Inserts, "inserts", f.cfg.Inserts, "relative frequency of sign-ons")
	flags.IntVar(&f.cfg.Updates, "updates", f.cfg.Updates, "relative frequency of changes of status")
	flags.IntVar(&f.cfg.Reads, "reads", f.cfg.Reads, "relative frequency of reads")
	flags.Float64Var(&f.cfg.Rate, "rate", 0, "operations per second of all publishers (default: no limit)")
	flags.DurationVar(&f.length, "for", 10*time.Second, "duration")
	flags.Uint64Var(&f.cfg.Seed, "seed", 0, "seed of the operations (default: random)")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

func (f *loadFlags) validate() error {
	if f.length <= 0 {
		return fmt.Errorf("--for is %v, want more than 0", f.length)
	}
	if f.publishers < 1 {
		return fmt.Errorf("--publishers is %d, want 1 or more", f.publishers)
	}
	for _, at := range f.frontends {
		if _, err := frontend.Client(at, 1); err != nil {
			return err
		}
	}
	if err := f.cfg.Validate(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func (f *loadFlags) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	opening, opened := awaitManagers(ctx, logger(cmd), f.managers)
	publishers, closeAll, err := load.Open(opening, f.managers, f.frontends, f.publishers, f.cfg.Callers)
	opened()
	if err != nil {
		return err
	}
	defer closeAll()
	f.cfg.Publishers = publishers
	l, err := load.Start(ctx, f.cfg)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done(): // interrupted
	case <-time.After(f.length):
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	report, err := l.Finish(ending)
	if err != nil {
		return err
	}
	if err := printReport(cmd, f.json, report); err != nil {
		return err
	}
	return report.Err()
}

func printReport(cmd *cobra.Command, asJSON bool, report fmt.Stringer) error {
	if !asJSON {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), report)
		return err
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}
