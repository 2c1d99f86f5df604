package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
)

func newFrontendCommand() *cobra.Command {
	s := &site{}
	cmd := &cobra.Command{
		Use:   "frontend",
		Short: "Serve what users reach: the API of all services, and a page",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.log = logger(cmd)
			return s.front(cmd)
		},
	}
	s.flags(cmd, "127.0.0.1:8080")
	return cmd
}

func (s *site) front(cmd *cobra.Command) error {
	ctx := cmd.Context()
	listener, err := s.listening(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it
	defer s.close()        //nolint:errcheck // nobody asks any more
	cfg := frontend.Config{Logger: s.log}
	opening, opened := s.opening(ctx, s.log)
	defer opened()
	for _, r := range roles() {
		l, err := s.lookup(opening, r.space)
		if err != nil {
			return err
		}
		cfg.Services = append(cfg.Services, frontend.Service{Prefix: "/" + string(r.space) + "/", Lookup: l, MaxOutstanding: r.maxOutstanding})
	}
	opened()
	handler, err := frontend.New(cfg)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "frontend on http://%s/\n", s.advertise)
	return serve(ctx, s.log, listener, handler, nil)
}
