package main

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/agentcmd"
	"github.com/leasehold-dev/leasehold/server/command/democmd"
	"github.com/leasehold-dev/leasehold/server/command/devcmd"
	"github.com/leasehold-dev/leasehold/server/command/eventscmd"
	"github.com/leasehold-dev/leasehold/server/command/fleasecmd"
	"github.com/leasehold-dev/leasehold/server/command/keycmd"
	"github.com/leasehold-dev/leasehold/server/command/managercmd"
	"github.com/leasehold-dev/leasehold/server/command/namespacecmd"
	"github.com/leasehold-dev/leasehold/server/command/ownercmd"
	"github.com/leasehold-dev/leasehold/server/command/pkicmd"
	"github.com/leasehold-dev/leasehold/server/command/rangecmd"
	"github.com/leasehold-dev/leasehold/server/command/statuscmd"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/doctor"
	"github.com/leasehold-dev/leasehold/server/gateway"
	"github.com/leasehold-dev/leasehold/server/top"
)

const rootHelp = `Leasehold gives every key of an in-memory service to exactly one server at a
time, tells callers where that server is, and tells them which keys lost their
state when a server dies.

A manager grants the leases ("leasehold manager run"). Servers hold them through
the owner library, callers find servers through the lookup library. These commands
run managers, and show and change what they manage.

With other computers everything speaks TLS, by certificates that --tls-dir names and
"leasehold pki" makes, or plain text if --insecure says that the network can be trusted.

Commands that ask a manager find it with --managers, LEASEHOLD_MANAGERS or the
key managers of the YAML file that --config or LEASEHOLD_CONFIG names, and
otherwise at 127.0.0.1:7400. With --json they print for programs.

Exit status: 0 it was done; 2 it could not be done as asked, or no manager
answered; 130 interrupted. The help of demo and doctor has further ones.`

const rootExample = `  leasehold manager run                  # a manager, alone, on this computer
  leasehold namespace create presence    # in another terminal
  leasehold status
  leasehold key find alice -n presence   # who holds the key of this name?`

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("leasehold", "Leases and partitioning for in-memory services", rootHelp, rootExample, daemon.BuildVersion())
	cli.AddGroup(root, "run", "Run", democmd.New(), devcmd.New(), managercmd.New(), gateway.NewCommand(), agentcmd.New(), fleasecmd.New())
	cli.AddGroup(root, "see", "See what is going on", statuscmd.New(), top.NewCommand(), eventscmd.New(), doctor.NewCommand())
	cli.AddGroup(root, "manage", "See and change what managers manage", namespacecmd.New(), ownercmd.New(), rangecmd.New(), keycmd.New())
	cli.AddGroup(root, "secure", "Secure it", pkicmd.New(), pkicmd.NewTokenCommand())
	cli.AddGroup(root, "other", "Other", daemon.NewVersionCommand())
	root.AddCommand(democmd.NewDemoManagerCommand(), democmd.NewDemoOwnerCommand())
	root.AddCommand(devcmd.NewChildCommands()...)
	return cli.Finish(root, "other")
}
