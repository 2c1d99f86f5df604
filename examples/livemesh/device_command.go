package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/device"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
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
			cfg, err := behind(at)
			if err != nil {
				return err
			}
			cfg.Name, cfg.Watch, cfg.Logger = args[0], watch, logger(cmd)
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

// behind is a device's view of the services behind a frontend.
func behind(at string) (device.Config, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return device.Config{}, fmt.Errorf("--frontend is %q, want a URL, http://127.0.0.1:8080 for instance", at)
	}
	at = strings.TrimSuffix(at, "/")
	client := &http.Client{Timeout: 2 * callPatience, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	return device.Config{
		Documents: &documents.Client{HTTP: client, URL: at},
		Topics:    &pubsub.Client{HTTP: client, URL: at},
		Queues:    &queue.Client{HTTP: client, URL: at},
	}, nil
}
