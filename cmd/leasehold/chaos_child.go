package main

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/chaos/actor"
	"github.com/leasehold-dev/leasehold/internal/proc"
	"github.com/leasehold-dev/leasehold/store/etcd"
)

// chaosChild is a process of a chaos run: it ends with its parent, and its standard
// output is for that.
func chaosChild(use, short string, run func(cmd *cobra.Command, log *slog.Logger) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Hidden: true, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			go proc.EndWithParent(cmd.InOrStdin())
			runtime.GOMAXPROCS(1) // many share the processors
			// All of it: what happened may not happen again.
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
			if err := run(cmd, log); err != nil {
				return failed{err}
			}
			return nil
		},
	}
}

func newChaosOwnerCommand() *cobra.Command {
	var cfg actor.OwnerConfig
	cmd := chaosChild("chaos-owner", "Run an owner of a chaos run", func(cmd *cobra.Command, log *slog.Logger) error {
		cfg.Records, cfg.Logger = cmd.OutOrStdout(), log
		return actor.RunOwner(cmd.Context(), cfg)
	})
	cfg.AddFlags(cmd.Flags())
	return cmd
}

func newChaosCallerCommand() *cobra.Command {
	var cfg actor.CallerConfig
	cmd := chaosChild("chaos-caller", "Run a caller of a chaos run", func(cmd *cobra.Command, log *slog.Logger) error {
		cfg.Events, cfg.Logger = cmd.OutOrStdout(), log
		return actor.RunCaller(cmd.Context(), cfg)
	})
	f := cmd.Flags()
	f.IntVar(&cfg.Number, "number", 0, "which caller it is")
	f.StringSliceVar(&cfg.Managers, "managers", nil, "where managers listen")
	f.IntVar(&cfg.Registers, "registers", 1, "how many registers there are")
	f.IntVar(&cfg.Workers, "workers", 1, "how many requests it makes at a time")
	f.DurationVar(&cfg.Every, "every", 0, "the time between two requests")
	f.DurationVar(&cfg.Poll, "poll", 0, "how often to ask whether the table is complete")
	f.DurationVar(&cfg.Stale, "stale", 0, "how old the proof of that may become")
	return cmd
}

func newChaosStoreCommand() *cobra.Command {
	cfg := actor.StoreConfig{Compact: "10m", Election: etcd.MinElection, Peers: make(map[string]string)} // as OPERATIONS says
	var peers []string
	cmd := chaosChild("chaos-store", "Run a member of the etcd cluster of a chaos run", func(cmd *cobra.Command, _ *slog.Logger) error {
		for _, p := range peers {
			name, addr, ok := strings.Cut(p, "=")
			if !ok {
				return fmt.Errorf("--peer %s: want name=address", p)
			}
			cfg.Peers[name] = addr
		}
		return actor.RunStore(cmd.Context(), cfg)
	})
	f := cmd.Flags()
	f.StringVar(&cfg.Name, "name", "", "its name")
	f.StringVar(&cfg.Dir, "dir", "", "its data directory")
	f.StringVar(&cfg.Client, "client", "", "where managers connect")
	f.StringSliceVar(&peers, "peer", nil, "name=address of a member, for each")
	return cmd
}
