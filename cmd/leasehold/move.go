package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

const moveHelp = `Has a range moved to an owner, with its state, and waits until that is done. RANGE
is written as "leasehold ranges" writes it, start-limit, with "end" for the end of
the key space; it may be part of a range of the table, or parts of several. With
--key it is the range of the table in which a key is.

The policy goes on from there: when it next finds reason to move something, it may
move the range on.

` + keyHelp

const moveExample = `  leasehold move 4000000000000000-8000000000000000 server-2 -n presence
  leasehold move --key alice server-2 -n presence --dry-run`

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
	o := addOrderFlags(cmd).canWait(cmd)
	cmd.Flags().StringVar(&key, "key", "", "the range of the table in which this `KEY` is, instead of RANGE")
	k := addKeyFlag(cmd)
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	cmd.ValidArgsFunction = c.completeTarget
	cmd.RunE = c.run(func(ctx context.Context, args []string) error {
		if err := o.validate(); err != nil {
			return err
		}
		owner := args[len(args)-1]
		if cmd.Flags().Changed("key") {
			parsed, err := k.parse(key)
			if err != nil {
				return err
			}
			return c.move(ctx, o, func(ctx context.Context, namespace string) (*admin.RangeMove, error) {
				return c.admin.MoveKey(ctx, namespace, parsed.key, owner, o.options())
			})
		}
		keys, err := leasehold.ParseRange(args[0])
		if err != nil {
			return err
		}
		return c.move(ctx, o, func(ctx context.Context, namespace string) (*admin.RangeMove, error) {
			return c.admin.MoveRange(ctx, namespace, keys, owner, o.options())
		})
	})
	return cmd
}

// completeTarget completes the owner of a move.
func (c *client) completeTarget(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := 1
	if cmd.Flags().Changed("key") {
		before = 0
	}
	if len(args) != before {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeOwners(cmd, args, typed)
}

// completeOwner completes a command's one argument, an owner.
func (c *client) completeOwner(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeOwners(cmd, args, typed)
}

// move has a move begun, and waits for it.
func (c *client) move(ctx context.Context, o *orderOptions, begin func(context.Context, string) (*admin.RangeMove, error)) error {
	m, err := within(ctx, c, begin)
	switch {
	case err != nil:
		return err
	case o.dryRun:
		return c.print(m, func() string { return planText(m.Plan) })
	case m.Plan.Total == 0:
		return c.print(m, func() string { return fmt.Sprintf("%s has %v already\n", console.Shown(m.Owner), m.Keys()) })
	case o.noWait:
		return c.print(m, func() string {
			return fmt.Sprintf("moving %v to %s: %s\n", m.Keys(), console.Shown(m.Owner), planSum(m.Plan))
		})
	}
	return c.awaitMove(ctx, m, o)
}

// awaitMove waits until the owner has the range, and shows how far it is.
func (c *client) awaitMove(ctx context.Context, m *admin.RangeMove, o *orderOptions) error {
	waiting, cancel := o.waiting(ctx)
	defer cancel()
	shows := newWaiting(c)
	err := m.Wait(waiting, func(p admin.Progress, trouble error) {
		shows.report(p.Share, fmt.Sprintf("%s of the keys left; %s, %s sent", console.Percent(p.Left), console.Counted(p.Moves, "move"), humanize.IBytes(m.Sent)), trouble)
	})
	shows.Stop()
	if err == nil {
		return c.print(m, func() string {
			return fmt.Sprintf("%s %v to %s in %s\n", console.Good("moved"), m.Keys(), console.Shown(m.Owner), console.Brief(time.Duration(m.Elapsed)))
		})
	}
	if c.json {
		if err := write(c.out, console.JSON(m)); err != nil {
			return err
		}
	}
	prospects := "It goes on: see 'leasehold moves'."
	if !m.InProgress() {
		prospects = "Nothing of it was on its way at the last look: see 'leasehold ranges' and 'leasehold moves'."
	}
	switch {
	case ctx.Err() != nil:
		c.errs.Say("%s\n", prospects)
		return statusInterrupted
	case waiting.Err() != nil:
		return fail(fmt.Errorf("it was not done within %v\n%s", o.within, prospects))
	case errors.Is(err, admin.ErrNotMoved):
		return fail(fmt.Errorf("%w\n'leasehold history' says what became of the keys, and the logs of the managers and of the owners say why", err))
	}
	return c.explain(ctx, err)
}
