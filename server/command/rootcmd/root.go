// Package rootcmd is the program leasehold: the root of its commands.
package rootcmd

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
	"github.com/leasehold-dev/leasehold/server/command/runcmd"
	"github.com/leasehold-dev/leasehold/server/command/statuscmd"
	"github.com/leasehold-dev/leasehold/server/daemon"
	"github.com/leasehold-dev/leasehold/server/doctor"
	"github.com/leasehold-dev/leasehold/server/gateway"
	"github.com/leasehold-dev/leasehold/server/top"
)

const rootHelp = `Leasehold assigns every key of an in-memory service to exactly one server at a
time, routes callers to that server, and notifies them of the keys that lost their
state when a server fails.

A manager grants the leases ("leasehold manager run"). Servers hold them through
the owner library, callers find servers through the lookup library. These commands
run managers, and administer a cluster.

Connections to other computers use TLS, with the certificates in --tls-dir, which
"leasehold pki" creates, or plaintext with --insecure, for trusted networks only.

Commands that call a manager use the addresses in --managers, LEASEHOLD_MANAGERS or
the key managers of the YAML file in --config or LEASEHOLD_CONFIG, and otherwise
127.0.0.1:7400. With --json they print JSON.

Exit status: 0 success; 2 the command failed, or no manager responded; 130
interrupted. The help of demo and doctor lists further ones.`

const rootExample = `  leasehold manager run                  # a single manager on this computer
  leasehold namespace create presence    # in another terminal
  leasehold status
  leasehold key find alice -n presence   # the owner of the key of this name`

// New returns the root with all commands.
func New() *cobra.Command {
	root := cli.NewRoot("leasehold", "Leases and partitioning for in-memory services", rootHelp, rootExample, daemon.BuildVersion())
	cli.AddGroup(root, "run", "Run", democmd.New(), devcmd.New(), managercmd.New(), runcmd.New(), gateway.NewCommand(), agentcmd.New(), fleasecmd.New())
	cli.AddGroup(root, "see", "Observe a cluster", statuscmd.New(), top.NewCommand(), eventscmd.New(), doctor.NewCommand())
	cli.AddGroup(root, "manage", "Administer a cluster", namespacecmd.New(), ownercmd.New(), rangecmd.New(), keycmd.New())
	cli.AddGroup(root, "secure", "Security", pkicmd.New(), pkicmd.NewTokenCommand())
	cli.AddGroup(root, "other", "Other", daemon.NewVersionCommand())
	root.AddCommand(democmd.NewDemoManagerCommand(), democmd.NewDemoOwnerCommand())
	root.AddCommand(devcmd.NewChildCommands()...)
	return cli.Finish(root, "other")
}
