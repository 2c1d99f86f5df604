package rangecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

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
	cmd.RunE = c.Run(func(ctx context.Context, _ []string) error { return moves(ctx, c) })
	return cmd
}

func moves(ctx context.Context, c *cli.Client) error {
	all, err := cli.Within(ctx, c, c.Admin.Moves)
	if err != nil {
		return err
	}
	return c.Print(all, func() string { return movesText(all) })
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
