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

const loadHelp = `Drives the presence service as the test application of the PRS paper does: publishers, each
with a lookup of its own as a frontend has, publish users, change and read them, and publish
again who was lost. At the end every user must be there as it was published last.

Without --frontend each publisher finds the servers by itself, as the paper's frontends do.
With --rate, how long an operation takes is counted from when it was due.`

// endTime is how long users may take to be there again at the end.
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
		Short: "Publish, change and read users, and say how long it took",
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
	flags.StringSliceVar(&f.managers, "managers", []string{"127.0.0.1:7400"}, "where the managers are")
	flags.StringSliceVar(&f.frontends, "frontend", nil, "where frontends are, to send requests through (default: straight to the servers)")
	flags.IntVar(&f.publishers, "publishers", 4, "how many frontends' worth of publishers there are")
	flags.IntVar(&f.cfg.Users, "users", f.cfg.Users, "how many users each has")
	flags.IntVar(&f.cfg.Callers, "callers", f.cfg.Callers, "how many operations each has under way")
	flags.IntVar(&f.cfg.Inserts, "inserts", f.cfg.Inserts, "how often a user signs on, relative to the others")
	flags.IntVar(&f.cfg.Updates, "updates", f.cfg.Updates, "how often a status is changed, relative to the others")
	flags.IntVar(&f.cfg.Reads, "reads", f.cfg.Reads, "how often a user is read, relative to the others")
	flags.Float64Var(&f.cfg.Rate, "rate", 0, "operations that are due in a second, all publishers together (default: as many as can be)")
	flags.DurationVar(&f.length, "for", 10*time.Second, "how long it takes")
	flags.Uint64Var(&f.cfg.Seed, "seed", 0, "decides who is asked about, and what (default: at random)")
	flags.BoolVar(&f.json, "json", false, "print one object")
	return cmd
}

func (f *loadFlags) validate() error {
	if f.length <= 0 {
		return fmt.Errorf("--for is %v, want more than that", f.length)
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
	case <-ctx.Done(): // the user has seen enough
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
