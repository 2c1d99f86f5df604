package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/manager"
)

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
