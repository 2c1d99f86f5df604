// Command leasehold runs managers and the other processes of a cluster, and administers them.
// "leasehold help" lists the commands.
package main

import "github.com/leasehold-dev/leasehold/server/cli"

func main() { cli.Main(newRootCommand()) }
