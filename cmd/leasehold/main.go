// Command leasehold runs managers and the other processes of a cluster, and administers them.
// "leasehold help" lists the commands.
package main

import (
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
)

func main() { cli.Main(rootcmd.New()) }
