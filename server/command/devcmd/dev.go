// Package devcmd is the subcommand "dev": a manager, a namespace and a gateway in one terminal.
package devcmd

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/managercmd"
	"github.com/leasehold-dev/leasehold/server/console"
	"github.com/leasehold-dev/leasehold/server/dev"
	"github.com/leasehold-dev/leasehold/server/gateway"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const devHelp = `Runs a manager, a namespace and a gateway on this computer for development, in plain
text on loopback, and prints their addresses and commands to try next. Ctrl-C ends
everything.

With --with-example it also runs two servers of a small service that keeps statuses of
users in memory. It is the service of examples/presence: GET and PUT /status/USER. All
are separate processes: kill one, and see what happens.

Data and logs are in a temporary directory that is removed at the end. With --data-dir
they stay, and the next run continues with them.`

const devExample = `  leasehold dev --with-example
  leasehold dev -n sessions --key header:X-Session
  leasehold dev --data-dir ./dev.data`

// New returns the command.
func New() *cobra.Command {
	var cfg dev.Config
	cmd := &cobra.Command{
		Use:     "dev",
		Short:   "Run a manager, a namespace and a gateway for development",
		Long:    devHelp,
		Example: devExample,
		Args:    cli.NoArguments,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&cfg.Example, "with-example", false, "run two servers of a presence service as well")
	f.StringVarP(&cfg.Namespace, "namespace", "n", "presence", "name of the namespace")
	f.StringVar(&cfg.Key, "key", "path:2", "where a request names its key; see leasehold gateway")
	f.StringVar(&cfg.Manager, "listen", cli.DefaultManager, "`address` of the manager")
	f.StringVar(&cfg.HTTP, "http", "127.0.0.1:7401", "`address` of the dashboard")
	f.StringVar(&cfg.Gateway, "gateway", "127.0.0.1:8080", "`address` of the gateway")
	f.StringVar(&cfg.DataDir, "data-dir", "", "`directory` for data and logs that are kept (default a temporary one)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		program, err := os.Executable()
		if err != nil {
			return cli.Fail(err)
		}
		cfg.Program = program
		return cli.Failure(dev.Run(cmd.Context(), cfg, console.New(cmd.OutOrStdout())))
	}
	return cmd
}

// NewChildCommands returns the hidden commands of the child processes.
func NewChildCommands() []*cobra.Command {
	return []*cobra.Command{
		child(dev.ManagerCommand, managercmd.NewRunCommand()), child(dev.GatewayCommand, gateway.NewCommand()), child(dev.ServerCommand, newServerCommand()),
	}
}

// child hides a command, and ends it when its parent ends.
func child(name string, cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Hidden = name, true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		go proc.EndWithParent(cmd.InOrStdin())
		return run(cmd, args)
	}
	return cmd
}

func newServerCommand() *cobra.Command {
	var s dev.Server
	cmd := &cobra.Command{
		Short: "Run a server of the example service",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Failure(s.Run(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))))
		},
	}
	cmd.Flags().StringVar(&s.Name, "name", "", "name of the owner")
	cmd.Flags().StringVarP(&s.Namespace, "namespace", "n", "", "name of the namespace")
	cmd.Flags().StringVar(&s.Manager, "manager", "", "address of the manager")
	return cmd
}
