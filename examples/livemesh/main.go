// Livemesh is the services of Live Mesh in one program, with a command for each role. See
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
	context.AfterFunc(ctx, stop) // asked twice, it ends at once
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "livemesh: %v\n", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "livemesh",
		Short: "The services of Live Mesh",
		Long: `The services that Centrifuge and its precursor were made for, rebuilt on Leasehold. Each
keeps its state in memory, on the server that owns a name; a frontend finds that server.

"livemesh demo" runs all of it on this computer, and kills servers while you watch.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	var child bool
	root.PersistentFlags().BoolVar(&child, "child", false, "end when standard input does: the parent has died")
	_ = root.PersistentFlags().MarkHidden("child") // it is there
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if child {
			go proc.EndWithParent(cmd.InOrStdin())
		}
	}
	for _, r := range roles() {
		root.AddCommand(r.command())
	}
	root.AddCommand(newFrontendCommand(), newDeviceCommand(), newManagerCommand(), newLoadCommand(), newDemoCommand())
	return root
}

func logger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
}
