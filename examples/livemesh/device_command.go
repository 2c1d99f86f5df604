package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
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
