package main

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/lab/command/chaoscmd"
	"github.com/leasehold-dev/leasehold/lab/command/policycmd"
	"github.com/leasehold-dev/leasehold/lab/command/simcmd"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/democmd"
	"github.com/leasehold-dev/leasehold/server/daemon"
)

const rootHelp = `Tries to break Leasehold: the real protocol in a simulator with all faults that it
must survive ("sim", "flease sim"), and real processes with real faults ("chaos"). It
also tries assignment policies on workloads ("policy").

Exit status: 0 nothing was found; 1 an invariant was violated; 2 it could not be done
as asked; 3 a planted bug was not found; 130 interrupted.`

const rootExample = `  leasehold-lab sim                 # 1000 simulated clusters, everything that can go wrong
  leasehold-lab chaos --for 30s     # a real cluster on this computer
  leasehold-lab policy try          # how a policy divides keys among owners`

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("leasehold-lab", "Tests of Leasehold that anybody can repeat", rootHelp, rootExample, daemon.BuildVersion())
	cli.AddGroup(root, "break", "Break it", simcmd.New(), simcmd.NewFlease(), chaoscmd.New())
	cli.AddGroup(root, "try", "Try it", policycmd.New())
	cli.AddGroup(root, "other", "Other", daemon.NewVersionCommand())
	root.AddCommand(append(chaoscmd.Children(), democmd.NewDemoManagerCommand())...)
	return cli.Finish(root, "other")
}
