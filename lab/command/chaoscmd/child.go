package chaoscmd

import (
	"context"
	"io"
	"log/slog"
	"runtime"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/lab/chaos/actor"
	"github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// child returns the command of a process of a chaos run. The process ends with its parent, which reads its standard output.
func child(use, short string, addFlags func(*pflag.FlagSet), run func(ctx context.Context, out io.Writer, log *slog.Logger) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Hidden: true, Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			go proc.EndWithParent(cmd.InOrStdin())
			runtime.GOMAXPROCS(1) // many processes share the processors
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
			if err := run(cmd.Context(), cmd.OutOrStdout(), log); err != nil {
				return cli.Fail(err)
			}
			return nil
		},
	}
	addFlags(cmd.Flags())
	return cmd
}

// Children returns the hidden commands of the processes of a chaos run.
func Children() []*cobra.Command {
	var owner actor.OwnerConfig
	var caller actor.CallerConfig
	store := actor.StoreConfig{Compact: "10m", Election: etcd.MinElection} // as docs/operations/install.md says
	return []*cobra.Command{
		child("chaos-owner", "Run an owner of a chaos run", owner.AddFlags, func(ctx context.Context, out io.Writer, log *slog.Logger) error {
			owner.Records, owner.Logger = out, log
			return actor.RunOwner(ctx, owner)
		}),
		child("chaos-caller", "Run a caller of a chaos run", caller.AddFlags, func(ctx context.Context, out io.Writer, log *slog.Logger) error {
			caller.Events, caller.Logger = out, log
			return actor.RunCaller(ctx, caller)
		}),
		child("chaos-store", "Run a member of the etcd cluster of a chaos run", store.AddFlags, func(ctx context.Context, _ io.Writer, _ *slog.Logger) error {
			return actor.RunStore(ctx, store)
		}),
	}
}
