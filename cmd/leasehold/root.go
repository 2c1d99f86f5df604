package main

import (
	"context"
	"errors"
	"io"

	"github.com/leasehold-dev/leasehold/lab/command/chaoscmd"
	"github.com/leasehold-dev/leasehold/lab/command/policycmd"
	"github.com/leasehold-dev/leasehold/lab/command/simcmd"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/agentcmd"
	"github.com/leasehold-dev/leasehold/server/command/democmd"
	"github.com/leasehold-dev/leasehold/server/command/doctorcmd"
	"github.com/leasehold-dev/leasehold/server/command/eventscmd"
	"github.com/leasehold-dev/leasehold/server/command/fleasecmd"
	"github.com/leasehold-dev/leasehold/server/command/gatewaycmd"
	"github.com/leasehold-dev/leasehold/server/command/keycmd"
	"github.com/leasehold-dev/leasehold/server/command/managercmd"
	"github.com/leasehold-dev/leasehold/server/command/namespacecmd"
	"github.com/leasehold-dev/leasehold/server/command/ownercmd"
	"github.com/leasehold-dev/leasehold/server/command/pkicmd"
	"github.com/leasehold-dev/leasehold/server/command/rangecmd"
	"github.com/leasehold-dev/leasehold/server/command/statuscmd"
	"github.com/leasehold-dev/leasehold/server/command/topcmd"
	"github.com/leasehold-dev/leasehold/server/daemon"

	"github.com/spf13/cobra"
)

// run is the whole program: it carries out the command that args name, and
// returns the exit status. When ctx ends, commands stop early, in good order.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var (
		ended   cli.Status
		trouble cli.Failed
	)
	switch {
	case err == nil:
		return int(cli.StatusOK)
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, &trouble):
		cmd.PrintErrf("leasehold: %v\n", err)
	default:
		if cmd.Name() == "help" {
			cmd = root
		}
		cmd.PrintErrf("leasehold: %v\nRun '%s --help' to see what is possible.\n", err, cmd.CommandPath())
	}
	return int(cli.StatusTrouble)
}

const rootHelp = `Leasehold gives every key of an in-memory service to exactly one server at a
time, tells callers where that server is, and tells them which keys lost their
state when a server dies.

A manager grants the leases ("leasehold manager"). Servers hold them through the
owner library, callers find servers through the lookup library. These commands
run a manager, look after what it manages, and try to break the protocol, in
simulation ("sim") and for real ("chaos").

With other computers everything speaks TLS, by certificates that --tls-dir names and
"leasehold pki" makes, or plain text if --insecure says that the network can be trusted.

Commands that ask a manager find it with --managers, LEASEHOLD_MANAGERS or the
key managers of the YAML file that --config or LEASEHOLD_CONFIG names, and
otherwise at 127.0.0.1:7400. With --json they print for programs.

Exit status: 0 it was done; 2 it could not be done as asked, or no manager
answered; 130 interrupted. "leasehold help sim" has those of the simulator, and so
have the help of chaos, demo and doctor.`

const rootExample = `  leasehold manager                      # run a manager, alone, on this computer
  leasehold namespace create presence    # in another terminal
  leasehold status
  leasehold lookup alice -n presence     # who holds the key of this name?
  leasehold sim                          # 1000 simulated clusters, everything that can go wrong`

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "leasehold",
		Short:   "Leases and partitioning for in-memory services",
		Long:    rootHelp,
		Example: rootExample,
		Version: daemon.BuildVersion(),
		// run prints errors, and a page of usage would only hide them.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(cli.ExplainFlagError)
	root.SetHelpCommand(newHelpCommand())
	addGroup(root, "run", "Run", democmd.New(), managercmd.New(), gatewaycmd.New(), agentcmd.New(), fleasecmd.New(), simcmd.New(), chaoscmd.New(), policycmd.New())
	addGroup(root, "see", "See what is going on", statuscmd.New(), topcmd.New(), ownercmd.NewOwnersCommand(), rangecmd.NewRangesCommand(),
		keycmd.NewLookupCommand(), keycmd.NewHistoryCommand(), eventscmd.NewEventsCommand(), rangecmd.NewMovesCommand(), eventscmd.NewWatchCommand(), doctorcmd.New())
	addGroup(root, "change", "Change things", namespacecmd.New(), ownercmd.NewDrainCommand(), rangecmd.NewMoveCommand(), rangecmd.NewRebalanceCommand(), managercmd.NewMemberCommand(),
		managercmd.NewBackupCommand(), managercmd.NewRestoreCommand())
	addGroup(root, "secure", "Secure it", pkicmd.New(), pkicmd.NewTokenCommand())
	addGroup(root, "other", "Other", newVersionCommand())
	root.AddCommand(democmd.NewDemoManagerCommand(), democmd.NewDemoOwnerCommand(), chaoscmd.NewChaosOwnerCommand(), chaoscmd.NewChaosCallerCommand(), chaoscmd.NewChaosStoreCommand())
	root.SetCompletionCommandGroupID("other")
	root.SetHelpCommandGroupID("other")
	addCompletion(root)
	return root
}

// addGroup adds commands that the help lists together.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title + ":"})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// addCompletion adds cobra's own command, in our words.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion") // cobra adds it only where it may be meant
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print a script that completes commands in your shell"
		}
	}
}

// newHelpCommand is cobra's own, but for a wrong name, which is an error here.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Explain a command",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			explained, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			explained.InitDefaultHelpFlag() // cobra adds both only when it parses
			explained.InitDefaultVersionFlag()
			return explained.Help()
		},
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Long: `Prints one line: the version, the commit if it is known, the Go release and the
platform it was built for. Please put it into bug reports.`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Write(cmd.OutOrStdout(), daemon.BuildVersion()+"\n")
		},
	}
}
