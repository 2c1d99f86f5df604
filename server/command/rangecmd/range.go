// Package rangecmd has the subcommands about ranges of keys: who holds them, and how they move.
package rangecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const rangesHelp = `Lists the lease table of a namespace: each range of keys and who holds it, under
which generation. Ranges are written start-limit, without the limit itself;
"end" is the end of the key space.

A leader without a store ("manager run --store flease") knows of no loss from before it
took over.`

// New returns the command.
func New() *cobra.Command {
	return cli.Group("range", "List, move and balance the ranges of a namespace", "The keys of a namespace are divided into ranges. Each has at most one owner at a time.",
		newListCommand(), newMoveCommand(), newMovesCommand(), newRebalanceCommand())
}

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
	cli.CompleteWith(cmd, "owner", c.CompleteOwners)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error {
		return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (admin.Ranges, error) {
			return c.Admin.Ranges(ctx, namespace, owner)
		}, func(all admin.Ranges) string { return cli.RangesText(all, "There is no such range.") })
	})
	return cmd
}

const movesHelp = `Lists the state that is on its way from one owner to another, and what waits for
its turn. The states are:

  begun    the source has been told, and has not spoken of it yet
  copying  the source serves the range, and copies
  stopped  the source has stopped serving the range, and sends the rest
  waiting  its source or its target has enough to do

A move from an owner to itself makes one lease of several that lie side by side.`

func newMovesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "moves",
		Short:   "List the state that is on its way to another owner",
		Long:    movesHelp,
		Example: "  leasehold range moves -n presence",
		Args:    cli.NoArguments,
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return cli.Answer(ctx, c, c.Admin.Moves, movesText) })
	return cmd
}

func movesText(d admin.Moves) string {
	if len(d.Moves) == 0 {
		return "Nothing is on its way.\n"
	}
	var rows [][]string
	for _, m := range d.Moves {
		row := []string{m.Keys().String(), console.Percent(m.Share), console.Shown(m.From), cli.OrNobody(m.To), m.State, "-", "-", "-"}
		if m.ID != "" {
			copy(row[5:], []string{console.Grouped(m.Records), humanize.IBytes(m.Bytes), console.Brief(time.Duration(m.Age))})
		}
		rows = append(rows, row)
	}
	return console.Table([]console.Column{
		console.Left("RANGE"), console.Number("SHARE"), console.Left("FROM"), console.Left("TO"), console.Left("STATE"), console.Number("RECORDS"), console.Number("SENT"), console.Number("AGE"),
	}, rows) + fmt.Sprintf("%s under way, %s waiting\n", console.Counted(int(d.UnderWay), "move"), console.Grouped(uint64(d.Waiting)))
}

const rebalanceHelp = `Has the policy asked at once who should have which keys, without regard to how
much it may move in a minute. It returns when the moves have begun;
"leasehold range moves" shows how far they are.

The policies balanced and adaptive go by the loads that owners report. The others
do not look at loads, and move something only if the table is not as they want it.`

func newRebalanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rebalance",
		Short:   "Balance the load now, whatever it moves",
		Long:    rebalanceHelp,
		Example: "  leasehold range rebalance -n presence --dry-run",
		Args:    cli.NoArguments,
	}
	o := cli.AddOrderFlags(cmd)
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return rebalance(ctx, c, o) })
	return cmd
}

// A rebalanceDocument is what "rebalance --json" prints.
type rebalanceDocument struct {
	Namespace string     `json:"namespace"`
	Outcome   string     `json:"outcome"` // planned (with --dry-run) or begun
	Plan      admin.Plan `json:"plan"`
}

func rebalance(ctx context.Context, c *cli.Client, o *cli.OrderOptions) error {
	return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (rebalanceDocument, error) {
		plan, err := c.Admin.Rebalance(ctx, namespace, o.Options())
		return rebalanceDocument{namespace, o.Options().Outcome(), plan}, err
	}, func(d rebalanceDocument) string {
		switch {
		case o.DryRun:
			return cli.PlanText(d.Plan)
		case d.Plan.Total == 0:
			return "The policy has nothing to move.\n"
		}
		return fmt.Sprintf("%s%s: see 'leasehold range moves'\n", cli.PlanText(d.Plan), console.Good("begun"))
	})
}
