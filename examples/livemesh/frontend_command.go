package main

import "github.com/spf13/cobra"

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
