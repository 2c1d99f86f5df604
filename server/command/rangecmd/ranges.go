package rangecmd

import (
	"context"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const rangesHelp = `Lists the lease table of a namespace: each range of keys and who holds it, under
which generation. Ranges are written start-limit, without the limit itself;
"end" is the end of the key space.

A leader without a store ("manager --store flease") knows of no loss from before it
took over.`

func NewRangesCommand() *cobra.Command {
	var owner string
	cmd := &cobra.Command{
		Use:   "ranges",
		Short: "List the lease table of a namespace",
		Long:  rangesHelp,
		Example: `  leasehold ranges -n presence
  leasehold ranges -n presence --owner server-1 --json`,
		Args: cli.NoArguments,
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.Flags().StringVar(&owner, "owner", "", "only the ranges of the owner of this `name`")
	// The name is that of a flag just added, the only thing that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("owner", c.CompleteOwners)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return ranges(ctx, c, owner) })
	return cmd
}

func ranges(ctx context.Context, c *cli.Client, owner string) error {
	all, err := cli.Within(ctx, c, func(ctx context.Context, namespace string) (admin.Ranges, error) {
		return c.Admin.Ranges(ctx, namespace, owner)
	})
	if err != nil {
		return err
	}
	return c.Print(all, func() string { return rangesText(all) })
}

func rangesText(d admin.Ranges) string {
	if len(d.Ranges) == 0 {
		return "There is no such range.\n"
	}
	var rows [][]string
	for _, r := range d.Ranges {
		rows = append(rows, []string{
			r.Keys().String(), console.Percent(r.Share), cli.OrNobody(r.Owner), console.OrDash(r.Addr), cli.Decimal(uint64(r.Generation)), cli.LostText(r),
		})
	}
	return console.Table([]console.Column{
		console.Left("RANGE"), console.Number("SHARE"), console.Left("OWNER"), console.Left("ADDRESS"), console.Number("GENERATION"), console.Left("STATE LAST LOST"),
	}, rows)
}
