package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/demo"
	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
)

const demoHelp = `Runs all of Live Mesh on this computer: three managers, two servers of each service and two
frontends, each a process of its own. A home PC and a work PC tell each other their addresses
(Centrifuge, figure 11), others publish and receive, and every few seconds a process is
killed, stopped or restarted. At the end each message is held against what was promised.

Open the URL that it prints in two windows of a browser to play along.`

func newDemoCommand() *cobra.Command {
	var cfg demo.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run all of it on this computer, and kill servers",
		Long:  demoHelp,
		Example: `  livemesh demo
  livemesh demo --for 10m --calm     # nothing is killed: do it yourself
  livemesh demo --for 30s --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Length <= 0 {
				return fmt.Errorf("--for is %v, want more than that", cfg.Length)
			}
			if !cmd.Flags().Changed("seed") {
				cfg.Seed = rand.Uint64()
			}
			cfg.Out = cmd.OutOrStdout()
			if asJSON {
				cfg.Out = io.Discard
			}
			report, err := runDemo(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return printReport(cmd, asJSON, report)
		},
	}
	cmd.Flags().DurationVar(&cfg.Length, "for", time.Minute, "how long it takes")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 0, "decides what is killed, and when (default: at random)")
	cmd.Flags().BoolVar(&cfg.Calm, "calm", false, "kill nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object at the end, and nothing else")
	return cmd
}

// runDemo leaves the logs of the processes if it fails.
func runDemo(ctx context.Context, cfg demo.Config) (*demo.Report, error) {
	dir, err := os.MkdirTemp("", "livemesh-demo-")
	if err != nil {
		return nil, err
	}
	report, err := demo.Run(ctx, cfg, func(ctx context.Context) (*fleet.Fleet, error) { return startFleet(ctx, dir) })
	if err != nil && !errors.Is(err, demo.ErrInterrupted) {
		return nil, fmt.Errorf("%w (the logs of the processes are in %s)", err, dir)
	}
	return report, errors.Join(err, os.RemoveAll(dir))
}

// startFleet starts processes of this program.
func startFleet(ctx context.Context, dir string) (*fleet.Fleet, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return fleet.Start(ctx, program, dir, namespaces())
}
