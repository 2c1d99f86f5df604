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
		Short: "Play a device in a terminal: publish an address, and say where others are",
		Example: `  livemesh device home --address 10.0.0.1 --watch work
  livemesh device work --address 10.0.0.2 --watch home`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want the NAME of one device, home for instance, and not %d of them", len(args))
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
				return errors.New("--address is missing: say where the device is, 10.0.0.1 for instance")
			}
			asks, err := frontend.Client(at, 2)
			if err != nil {
				return err
			}
			cfg := device.Config{Name: args[0], Watch: watch, Frontend: asks, Logger: logger(cmd)}
			cfg.Learned = func(peer, address string) {
				if address == "" {
					address = "nowhere"
				}
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s is at %s\n", peer, address)
			}
			return device.New(cfg, address).Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&at, "frontend", "http://127.0.0.1:8080", "where a frontend is")
	cmd.Flags().StringVar(&address, "address", "", "where the device is")
	cmd.Flags().StringSliceVar(&watch, "watch", nil, "the devices whose addresses it wants to know")
	return cmd
}

func newFrontendCommand() *cobra.Command {
	s := &site{}
	cmd := &cobra.Command{
		Use:   "frontend",
		Short: "Serve what users reach: the API of all services, and a page",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.serveFrontend(cmd) },
	}
	s.flags(cmd, "127.0.0.1:8080")
	return cmd
}

// newManagerCommand runs a manager inside this program, so that the demo needs no other.
// People run "leasehold manager run".
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
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:7400", "where to listen")
	cmd.Flags().StringSliceVar(&peers, "peers", nil, "all managers, this one included")
	cmd.Flags().DurationVar(&longest, "longest", 0, "the longest time for which a server may believe in a lease")
	return cmd
}

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

func startFleet(ctx context.Context, dir string) (*fleet.Fleet, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return fleet.Start(ctx, program, dir, namespaces())
}
