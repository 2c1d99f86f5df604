package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/demo"
	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/manager"
)

// newManagerCommand runs a manager inside this program, so that the demo needs no other
// program. It ignores the other flags of "leasehold manager run", which deployments use.
func newManagerCommand() *cobra.Command {
	s, peers, longest := &site{}, []string(nil), time.Duration(0)
	cmd := &cobra.Command{
		Use:                "manager",
		Short:              "Run a manager of the demo",
		Hidden:             true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := s.listener(cmd.Context())
			if err != nil {
				return err
			}
			cfg := manager.Config{Listener: listener, Peers: &manager.Peers{Longest: longest}, Logger: logger(cmd)}
			for _, addr := range peers {
				cfg.Peers.Members = append(cfg.Peers.Members, manager.Peer{Manager: addr})
			}
			m, err := manager.Start(cfg)
			if err != nil {
				return err
			}
			select {
			case <-cmd.Context().Done():
			case <-m.Done():
			}
			return within(closeTime, m.Close)
		},
	}
	cmd.Flags().StringVar(&s.listen, "listen", "", "address to listen on")
	cmd.Flags().StringSliceVar(&peers, "peers", nil, "addresses of all managers, including this one")
	cmd.Flags().DurationVar(&longest, "longest-lease", 0, "the longest lease of any namespace, including drift")
	return cmd
}

const demoHelp = `Runs all of Live Mesh on this machine: three managers, two servers of each service and two
frontends, each in a process of its own. A home PC and a work PC publish their addresses to
each other (Centrifuge, figure 11), other clients publish and receive, and every few seconds
a process is killed, stopped or restarted. At the end each message is checked against the
guarantees of its service.

Open the printed URL in two browser windows to take part.`

func newDemoCommand() *cobra.Command {
	var cfg demo.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run all services on this machine, and kill servers",
		Long:  demoHelp,
		Example: `  livemesh demo
  livemesh demo --for 10m --calm     # nothing is killed: do it yourself
  livemesh demo --for 30s --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Length <= 0 {
				return fmt.Errorf("--for is %v, want more than 0", cfg.Length)
			}
			if !cmd.Flags().Changed("seed") {
				cfg.Seed = rand.Uint64()
			}
			out := cmd.OutOrStdout()
			if cfg.Out = out; asJSON {
				cfg.Out = io.Discard
			}
			report, err := runDemo(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(out).Encode(report)
			}
			_, err = fmt.Fprintln(out, report)
			return err
		},
	}
	cmd.Flags().DurationVar(&cfg.Length, "for", time.Minute, "duration")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 0, "seed of the faults (default: random)")
	cmd.Flags().BoolVar(&cfg.Calm, "calm", false, "inject no faults")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print only the report, as JSON")
	return cmd
}

// runDemo keeps the logs of the processes if it fails.
func runDemo(ctx context.Context, cfg demo.Config) (*demo.Report, error) {
	dir, err := os.MkdirTemp("", "livemesh-demo-")
	if err != nil {
		return nil, err
	}
	report, err := demo.Run(ctx, cfg, func(ctx context.Context) (*fleet.Fleet, error) { return startFleet(ctx, dir) })
	if err != nil && !errors.Is(err, demo.ErrInterrupted) {
		return nil, fmt.Errorf("%w (logs of the processes: %s)", err, dir)
	}
	return report, errors.Join(err, os.RemoveAll(dir))
}

func startFleet(ctx context.Context, dir string) (*fleet.Fleet, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var spaces []leasehold.Namespace
	for _, r := range roles() {
		spaces = append(spaces, r.space)
	}
	return fleet.Start(ctx, program, dir, spaces)
}
