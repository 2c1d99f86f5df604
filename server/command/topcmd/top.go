// Package topcmd is the subcommand "top": a live view of a cluster in a terminal.
package topcmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/top"
)

const topHelp = `Shows a namespace as it lives: who leads, the owners with their loads and shares,
what is on its way from one to another, the hottest keys, and what has happened last;
on pages of their own all ranges, the lookups, the events, and what became of a key.
It is drawn again every second, and fits itself to the terminal.

` + top.TopKeysHelp + `

When no manager answers it says since when, and goes on showing what it last saw.

With --once it prints one picture and ends, with --json one line of JSON for each look
until it is interrupted, and with both a single one. Output that is no terminal needs
one of the two.`

func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a namespace live: owners, loads, moves, events",
		Long:  topHelp,
		Example: `  leasehold top -n presence
  leasehold top --once
  leasehold top --json | jq '.owners | length'`,
		Args: cli.NoArguments,
	}
	o := &top.Options{Client: cli.NewClient(cmd).InNamespace(cmd, "begin with the namespace of this `name`; the first if there is none")}
	cmd.Flags().BoolVar(&o.Once, "once", false, "print one picture and end")
	cmd.Flags().DurationVar(&o.Every, "every", time.Second, "how long to wait between two looks")
	cmd.Flags().StringVar(&o.Sort, "sort", top.Sorts[0], "by what to sort owners: load, share or name")
	cmd.RunE = o.Run(func(ctx context.Context, _ []string) error { return o.Top(ctx, cmd) })
	return cmd
}
