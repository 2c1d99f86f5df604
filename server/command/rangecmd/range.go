// Package rangecmd is the subcommand "range".
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

const rangesHelp = `Lists the lease table of a namespace: each range of keys, its owner, and the generation
of its lease. Ranges are written start-limit, where the limit is exclusive; "end" is the
end of the key space.

Without a store ("manager run --store flease") the leader has no record of losses before
its election.`

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
	cmd.Flags().StringVar(&owner, "owner", "", "only the ranges of the owner with this `name`")
	cli.CompleteWith(cmd, "owner", c.CompleteOwners)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error {
		return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (admin.Ranges, error) {
			return c.Admin.Ranges(ctx, namespace, owner)
		}, func(all admin.Ranges) string { return cli.RangesText(all, "No such range.") })
	})
	return cmd
}

const movesHelp = `Lists the transfers of state from one owner to another, and the queued ones. The states
are:

  begun    the order was sent to the source, which has not reported yet
  copying  the source serves the range, and copies its state
  stopped  the source has stopped serving the range, and sends the rest
  waiting  queued: the source or the target is at its limit of transfers

A move from an owner to itself merges adjacent leases into one.`

func newMovesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "moves",
		Short:   "List the transfers of state between owners",
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
		return "No transfers are in progress.\n"
	}
	var rows [][]string
	for _, m := range d.Moves {
		row := []string{m.Keys().String(), console.Percent(m.Share), console.Shown(m.From), cli.OrNone(m.To), m.State, "-", "-", "-"}
		if m.ID != "" {
			copy(row[5:], []string{console.Grouped(m.Records), humanize.IBytes(m.Bytes), console.Brief(time.Duration(m.Age))})
		}
		rows = append(rows, row)
	}
	return console.Table([]console.Column{
		console.Left("RANGE"), console.Number("SHARE"), console.Left("FROM"), console.Left("TO"), console.Left("STATE"), console.Number("RECORDS"), console.Number("SENT"), console.Number("AGE"),
	}, rows) + fmt.Sprintf("%s in progress, %s queued\n", console.Counted(int(d.UnderWay), "move"), console.Grouped(uint64(d.Waiting)))
}

const rebalanceHelp = `Runs the assignment policy at once, without its limit on moves per minute. It returns when
the moves have begun; "leasehold range moves" shows their progress.

The policies balanced and adaptive use the loads that owners report. The others ignore
loads, and move keys only if the table differs from their assignment.`

func newRebalanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rebalance",
		Short:   "Balance the load now, without the limit on moves",
		Long:    rebalanceHelp,
		Example: "  leasehold range rebalance -n presence --dry-run",
		Args:    cli.NoArguments,
	}
	o := cli.AddOrderFlags(cmd)
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return rebalance(ctx, c, o) })
	return cmd
}

// A rebalanceDocument is the output of "rebalance --json".
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
