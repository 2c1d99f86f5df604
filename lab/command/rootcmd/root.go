// Package rootcmd is the program leasehold-lab: the root of its commands.
package rootcmd

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/command/chaoscmd"
	"github.com/leasehold-dev/leasehold/lab/command/policycmd"
	"github.com/leasehold-dev/leasehold/lab/command/simcmd"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/democmd"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

const rootHelp = `Tests Leasehold: the real protocol in a simulator that injects every fault it must
tolerate ("sim", "flease sim"), and real processes with real faults ("chaos"). It also
evaluates assignment policies on workloads ("policy").

Exit status: 0 no violation found; 1 an invariant was violated; 2 the command failed; 3 a
planted bug was not detected; 130 interrupted.`

const rootExample = `  leasehold-lab sim                 # 1000 simulated clusters with all kinds of faults
  leasehold-lab chaos --for 30s     # a real cluster on this computer
  leasehold-lab policy try          # how a policy divides keys among owners`

// New returns the root with all commands.
func New() *cobra.Command {
	root := cli.NewRoot("leasehold-lab", "Reproducible tests of Leasehold", rootHelp, rootExample, daemon.BuildVersion())
	cli.AddGroup(root, "break", "Fault injection", simcmd.New(), simcmd.NewFlease(), chaoscmd.New())
	cli.AddGroup(root, "try", "Policies", policycmd.New())
	cli.AddGroup(root, "other", "Other", daemon.NewVersionCommand())
	root.AddCommand(append(chaoscmd.Children(), democmd.NewDemoManagerCommand())...)
	return cli.Finish(root, "other")
}
