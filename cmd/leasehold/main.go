// Command leasehold runs managers and what else a cluster needs, and shows and changes what they
// manage. "leasehold help" lists the commands.
package main

import "github.com/leasehold-dev/leasehold/server/cli"

func main() { cli.Main(newRootCommand()) }
