package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/demo"
	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/fleet"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/manager"
)

func newDeviceCommand() *cobra.Command {
	var at, address string
	var watch []string
	cmd := &cobra.Command{
		Use:   "device NAME",
		Short: "Run a device in a terminal: publish an address, and print those of others",
		Example: `  livemesh device home --address 10.0.0.1 --watch work
  livemesh device work --address 10.0.0.2 --watch home`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want the NAME of one device, for example home; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range slices.Concat(args, watch) {
				if err := jsonhttp.ValidName("play", "a device", name); err != nil {
					return err
				}
			}
			if address == "" {
				return errors.New("--address is missing: want the device's address, for example 10.0.0.1")
			}
			api, err := frontend.Client(at, 2)
			if err != nil {
				return err
			}
			cfg := device.Config{Name: args[0], Watch: watch, Frontend: api, Logger: logger(cmd)}
			cfg.Learned = func(peer, address string) {
				if address == "" {
					address = "nowhere"
				}
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s is at %s\n", peer, address)
			}
			return device.New(cfg, address).Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&at, "frontend", "http://127.0.0.1:8080", "URL of a frontend")
	cmd.Flags().StringVar(&address, "address", "", "address of the device")
	cmd.Flags().StringSliceVar(&watch, "watch", nil, "names of devices whose addresses to print")
	return cmd
}

func newFrontendCommand() *cobra.Command {
	s := &site{}
	cmd := &cobra.Command{
		Use:   "frontend",
		Short: "Serve the API of all services, and a page",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.serveFrontend(cmd) },
	}
	s.flags(cmd, "127.0.0.1:8080")
	return cmd
}

// newManagerCommand runs a manager inside this program, so that the demo needs no other
// program. Deployments use "leasehold manager run".
func newManagerCommand() *cobra.Command {
	var listen string
	var peers []string
	var longest time.Duration
	cmd := &cobra.Command{
		Use:    "manager",
		Short:  "Run a manager of the demo",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := &site{listen: listen}
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
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "manager on %s\n", m.Addr())
			select {
			case <-cmd.Context().Done():
			case <-m.Done():
			}
			closing, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), closeTime)
			defer cancel()
			return m.Close(closing)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:7400", "address to listen on")
	cmd.Flags().StringSliceVar(&peers, "peers", nil, "addresses of all managers, including this one")
	cmd.Flags().DurationVar(&longest, "longest", 0, "the longest lease of any namespace, including drift")
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
	return fleet.Start(ctx, program, dir, namespaces())
}
