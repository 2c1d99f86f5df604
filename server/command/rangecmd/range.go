package rangecmd

import (
	"context"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
)

const rangesHelp = `Lists the lease table of a namespace: each range of keys and who holds it, under
which generation. Ranges are written start-limit, without the limit itself;
"end" is the end of the key space.

A leader without a store ("manager run --store flease") knows of no loss from before it
took over.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("range", "List, move and balance the ranges of a namespace", groupHelp,
		newListCommand(), newMoveCommand(), newMovesCommand(), newRebalanceCommand())
}

const groupHelp = `The keys of a namespace are divided into ranges. Each has at most one owner at a time.`

func newListCommand() *cobra.Command {
	var owner string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the lease table of a namespace",
		Long:  rangesHelp,
		Example: `  leasehold range list -n presence
  leasehold range list -n presence --owner server-1 --json`,
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
	return c.Print(all, func() string { return cli.RangesText(all, "There is no such range.") })
}
