// Command leasehold-lab tests Leasehold in simulation and with real processes, and measures it.
// "leasehold-lab help" lists the commands.
package main

import (
	"github.com/leasehold-dev/leasehold/lab/command/rootcmd"
	"github.com/leasehold-dev/leasehold/server/cli"
)

func main() { cli.Main(rootcmd.New()) }
