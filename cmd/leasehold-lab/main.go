// Command leasehold-lab tries to break Leasehold, in simulation and for real, and measures it.
// "leasehold-lab help" lists the commands.
package main

import "github.com/leasehold-dev/leasehold/server/cli"

func main() { cli.Main(newRootCommand()) }
