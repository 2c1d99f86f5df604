package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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
		request := &leaseholdv1.MoveRangeRequest{Version: wire.Version, Owner: args[len(args)-1], LoseState: o.loseState}
		if cmd.Flags().Changed("key") {
			parsed, err := k.parse(key)
			if err != nil {
				return err
			}
			request.Start, request.ByKey = uint64(parsed.key), true
		} else {
			r, err := leasehold.ParseRange(args[0])
			if err != nil {
				return err
			}
			request.Start, request.Limit = uint64(r.Start), uint64(r.Limit)
		}
		return c.move(ctx, request, o)
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

// A moveDocument is what "move --json" prints.
type moveDocument struct {
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	Start     string `json:"start"`
	Limit     string `json:"limit"` // 0000000000000000: the end of the key space
	// Outcome is planned (with --dry-run), begun (with --no-wait), moved, or if the
	// waiting ended first, unfinished.
	Outcome string       `json:"outcome"`
	Sent    uint64       `json:"sentBytes"`
	Seconds float64      `json:"seconds"`
	Plan    planDocument `json:"plan"` // empty if the owner had it already

	keys     leasehold.Range
	patience time.Duration // see comesToNothing
}

func (c *client) move(ctx context.Context, r *leaseholdv1.MoveRangeRequest, o *orderOptions) error {
	d := &moveDocument{Owner: r.GetOwner()}
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) error {
		r.Namespace, d.Namespace = c.namespace, c.namespace
		return c.beginMove(ctx, to, r, d, o)
	}); err != nil {
		return err
	}
	switch {
	case o.dryRun:
		d.Outcome = "planned"
		return c.print(d, d.Plan.text)
	case d.Plan.Total == 0:
		d.Outcome = "moved"
		return c.print(d, func() string { return fmt.Sprintf("%s has %v already\n", shown(d.Owner), d.keys) })
	case o.noWait:
		d.Outcome = "begun"
		return c.print(d, func() string { return fmt.Sprintf("moving %v to %s: %s\n", d.keys, shown(d.Owner), d.Plan.sum()) })
	}
	return c.awaitMove(ctx, d, o)
}

// beginMove has a move begun, or says what it would move. From then on the range
// is named by its bounds. It is one question to the leader, unless that refuses.
func (c *client) beginMove(ctx context.Context, to admin, r *leaseholdv1.MoveRangeRequest, d *moveDocument, o *orderOptions) error {
	owners, err := c.listOwners(ctx, to)
	if err != nil {
		return err
	}
	if _, err := c.knownOwner(owners, d.Owner); err != nil {
		return err
	}
	r.DryRun = o.dryRun
	answer, err := to.MoveRange(ctx, r)
	if err != nil {
		return whyRefused(err, "this move", owners, func() (*leaseholdv1.Plan, error) {
			r.DryRun = true
			answer, err := to.MoveRange(ctx, r)
			return answer.GetPlan(), err
		})
	}
	d.keys = leasehold.Range{Start: leasehold.Key(answer.GetStart()), Limit: leasehold.Key(answer.GetLimit())}
	d.Start, d.Limit, d.Plan = d.keys.Start.String(), d.keys.Limit.String(), planJSON(answer.GetPlan())
	d.patience = comesToNothing
	if d.Plan.ShareLost > 0 {
		d.patience += longestPatience(owners) // what is not moved is recalled, and nobody sees it under way
	}
	return nil
}
