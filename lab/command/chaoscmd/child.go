package chaoscmd

import (
	"log/slog"
	"runtime"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/chaos/actor"
	"github.com/leasehold-dev/leasehold/server/proc"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// chaosChild is a process of a chaos run. It ends with its parent, which reads its standard output.
func chaosChild(use, short string, run func(cmd *cobra.Command, log *slog.Logger) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Hidden: true, Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			go proc.EndWithParent(cmd.InOrStdin())
			runtime.GOMAXPROCS(1) // many share the processors
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
			if err := run(cmd, log); err != nil {
				return cli.Fail(err)
			}
			return nil
		},
	}
}

func NewChaosOwnerCommand() *cobra.Command {
	var cfg actor.OwnerConfig
	cmd := chaosChild("chaos-owner", "Run an owner of a chaos run", func(cmd *cobra.Command, log *slog.Logger) error {
		cfg.Records, cfg.Logger = cmd.OutOrStdout(), log
		return actor.RunOwner(cmd.Context(), cfg)
	})
	cfg.AddFlags(cmd.Flags())
	return cmd
}

func NewChaosCallerCommand() *cobra.Command {
	var cfg actor.CallerConfig
	cmd := chaosChild("chaos-caller", "Run a caller of a chaos run", func(cmd *cobra.Command, log *slog.Logger) error {
		cfg.Events, cfg.Logger = cmd.OutOrStdout(), log
		return actor.RunCaller(cmd.Context(), cfg)
	})
	cfg.AddFlags(cmd.Flags())
	return cmd
}

func NewChaosStoreCommand() *cobra.Command {
	cfg := actor.StoreConfig{Compact: "10m", Election: etcd.MinElection} // as OPERATIONS says
	cmd := chaosChild("chaos-store", "Run a member of the etcd cluster of a chaos run", func(cmd *cobra.Command, _ *slog.Logger) error {
		return actor.RunStore(cmd.Context(), cfg)
	})
	cfg.AddFlags(cmd.Flags())
	return cmd
}
