package simcmd

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
)

const fleaseHelp = `Tries to break Flease, leases that a group of processes agree upon without a manager,
and measures it.`

// NewFlease returns the command "flease".
func NewFlease() *cobra.Command {
	return cli.Group("flease", "Simulate and measure leases without a manager", fleaseHelp,
		newFleaseSimCommand(), newFleaseBenchCommand(), newFleaseBenchMemberCommand())
}
