// Livemesh is all services of Live Mesh in one program, with a command for each role. See
// README.md.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/proc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends it at once
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "livemesh: %v\n", err)
		os.Exit(1) //nolint:gocritic // stop is not needed
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "livemesh",
		Short: "The services of Live Mesh",
		Long: `The services of Live Mesh, for which Centrifuge and its precursor were built, on Leasehold. Each
keeps its state in memory, on the server that owns a name; a frontend forwards requests to it.

"livemesh demo" runs all services on this machine, and kills servers.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	var child bool
	root.PersistentFlags().BoolVar(&child, "child", false, "exit when standard input ends, because the parent has ended")
	_ = root.PersistentFlags().MarkHidden("child") // the flag exists
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if child {
			go proc.EndWithParent(cmd.InOrStdin())
		}
	}
	for _, r := range roles() {
		root.AddCommand(r.command())
	}
	root.AddCommand(newFrontendCommand(), newManagerCommand(), newDemoCommand())
	return root
}

func logger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
}
