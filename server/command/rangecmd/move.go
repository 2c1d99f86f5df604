package rangecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const moveHelp = `Moves a range to an owner, with its state, and waits until that is done. RANGE has the
format of "leasehold range list", start-limit, with "end" for the end of the key space; it
may be part of a range of the table, or span several. With --key it is the range of the
table that contains a key.

The assignment policy stays active: a later rebalancing may move the range again.

` + cli.KeyHelp

const moveExample = `  leasehold range move 4000000000000000-8000000000000000 server-2 -n presence
  leasehold range move --key alice server-2 -n presence --dry-run`

func newMoveCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:     "move RANGE OWNER",
		Short:   "Move a range to an owner",
		Long:    moveHelp,
		Example: moveExample,
		Args: func(cmd *cobra.Command, args []string) error {
			switch byKey := cmd.Flags().Changed("key"); {
			case byKey && len(args) != 1:
				return fmt.Errorf("%s --key needs one argument, the name of an owner, and has %d", cmd.CommandPath(), len(args))
			case !byKey && len(args) != 2:
				return fmt.Errorf("%s needs two arguments, a range and the name of an owner, and has %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
	}
	o := cli.AddOrderFlags(cmd).CanWait(cmd)
	cmd.Flags().StringVar(&key, "key", "", "move the range of the table with this `KEY`, instead of RANGE")
	k := cli.AddKeyFlag(cmd)
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeTarget(c, cmd, args, typed)
	}
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if err := o.Validate(); err != nil {
			return err
		}
		owner := args[len(args)-1]
		if cmd.Flags().Changed("key") {
			parsed, err := k.Parse(key)
			if err != nil {
				return err
			}
			return move(ctx, c, o, func(ctx context.Context, namespace string) (*admin.RangeMove, error) {
				return c.Admin.MoveKey(ctx, namespace, parsed.Key, owner, o.Options())
			})
		}
		keys, err := leasehold.ParseRange(args[0])
		if err != nil {
			return err
		}
		return move(ctx, c, o, func(ctx context.Context, namespace string) (*admin.RangeMove, error) {
			return c.Admin.MoveRange(ctx, namespace, keys, owner, o.Options())
		})
	})
	return cmd
}

func completeTarget(c *cli.Client, cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := 1
	if cmd.Flags().Changed("key") {
		before = 0
	}
	if len(args) != before {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.CompleteOwners(cmd, args, typed)
}

func move(ctx context.Context, c *cli.Client, o *cli.OrderOptions, begin func(context.Context, string) (*admin.RangeMove, error)) error {
	m, err := cli.Within(ctx, c, begin)
	switch {
	case err != nil:
		return err
	case o.DryRun:
		return c.Print(m, func() string { return cli.PlanText(m.Plan) })
	case m.Plan.Total == 0:
		return c.Print(m, func() string { return fmt.Sprintf("%s already owns %v\n", console.Shown(m.Owner), m.Keys()) })
	case o.NoWait:
		return c.Print(m, func() string {
			return fmt.Sprintf("moving %v to %s: %s\n", m.Keys(), console.Shown(m.Owner), cli.PlanSum(m.Plan))
		})
	}
	return awaitMove(ctx, c, m, o)
}

func awaitMove(ctx context.Context, c *cli.Client, m *admin.RangeMove, o *cli.OrderOptions) error {
	wait := func(ctx context.Context, report func(float64, string, error)) error {
		return m.Wait(ctx, func(p admin.Progress, trouble error) {
			report(p.Share, fmt.Sprintf("%s of the keys left; %s, %s sent", console.Percent(p.Left), console.Counted(p.Moves, "move"), humanize.IBytes(m.Sent)), trouble)
		})
	}
	moved := func() string {
		return fmt.Sprintf("%s %v to %s in %s\n", console.Good("moved"), m.Keys(), console.Shown(m.Owner), console.Brief(time.Duration(m.Elapsed)))
	}
	unfinished := func() string {
		if m.InProgress() {
			return "The move continues: see 'leasehold range moves'."
		}
		return "At the last check no part of it was moving: see 'leasehold range list' and 'leasehold range moves'."
	}
	return o.Await(ctx, c, m, wait, moved, unfinished, func(err error) error {
		if !errors.Is(err, admin.ErrNotMoved) {
			return nil
		}
		return fmt.Errorf("%w\n'leasehold key history' shows the history of the keys; the logs of the managers and owners contain the cause.", err)
	})
}
