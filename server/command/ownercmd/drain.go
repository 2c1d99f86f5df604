package ownercmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

const drainHelp = `Moves all keys of an owner to others, with their state, and waits until that is done.
The owner serves each key until it has moved, and receives no new ones until its process
ends or the drain is cancelled.

State can move if the source and the target were started with a mover. Otherwise it would
be lost, and the drain is rejected unless --lose-state is given.

Ctrl-C ends the wait, not the drain; --cancel ends the drain.`

const drainExample = `  leasehold owner drain server-3 -n presence --dry-run
  leasehold owner drain server-3 -n presence --within 10m && ssh server-3 reboot
  leasehold owner drain server-3 -n presence --cancel`

func newDrainCommand() *cobra.Command {
	cancel := false
	cmd := &cobra.Command{
		Use:     "drain OWNER",
		Short:   "Move all keys away from an owner",
		Long:    drainHelp,
		Example: drainExample,
		Args:    cli.OneArgument("the name of an owner"),
	}
	o := cli.AddOrderFlags(cmd).CanWait(cmd)
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the drain; moved keys stay with their new owners for now")
	for _, other := range []string{"dry-run", "lose-state", "no-wait", "within"} {
		cmd.MarkFlagsMutuallyExclusive("cancel", other)
	}
	c := cli.NewClient(cmd).InNamespace(cmd, cli.UsualNamespace)
	cmd.ValidArgsFunction = c.CompleteOwner()
	cmd.RunE = c.Run(func(ctx context.Context, args []string) error {
		if err := o.Validate(); err != nil {
			return err
		}
		if cancel {
			return undrain(ctx, c, args[0])
		}
		return drain(ctx, c, args[0], o)
	})
	return cmd
}

func undrain(ctx context.Context, c *cli.Client, owner string) error {
	return cli.Answer(ctx, c, func(ctx context.Context, namespace string) (admin.Drain, error) {
		return admin.Drain{Namespace: namespace, Owner: owner, Outcome: admin.OutcomeCancelled}, c.Admin.CancelDrain(ctx, namespace, owner)
	}, func(d admin.Drain) string {
		return fmt.Sprintf("%s: %s can receive keys again\n", console.Good("cancelled"), console.Shown(d.Owner))
	})
}

func drain(ctx context.Context, c *cli.Client, owner string, o *cli.OrderOptions) error {
	d, err := cli.Within(ctx, c, func(ctx context.Context, namespace string) (*admin.Drain, error) {
		return c.Admin.Drain(ctx, namespace, owner, o.Options(), o.NoWait)
	})
	switch {
	case errors.Is(err, admin.ErrNoTaker):
		return cli.Fail(fmt.Errorf("no other owner can receive the keys of %s: start another owner first\nWith --no-wait the drain starts as soon as there is one.", console.Shown(owner)))
	case err != nil:
		return err
	case o.DryRun:
		return c.Print(d, func() string { return cli.PlanText(*d.Plan) })
	case o.NoWait:
		return c.Print(d, func() string {
			return fmt.Sprintf("draining %s: %s, %s of the keys\n", console.Shown(owner), console.Counted(int(d.Leases), "lease"), console.Percent(d.Share))
		})
	}
	return awaitDrain(ctx, c, d, o)
}

func awaitDrain(ctx context.Context, c *cli.Client, d *admin.Drain, o *cli.OrderOptions) error {
	wait := func(ctx context.Context, report func(float64, string, error)) error {
		return d.Wait(ctx, func(p admin.Progress, trouble error) { report(p.Share, drainText(d, p), trouble) })
	}
	unfinished := func() string {
		return fmt.Sprintf("%s still has %s, %s of the keys. The drain continues: see 'leasehold range moves', or end it with 'leasehold owner drain %s --cancel'.",
			console.Shown(d.Owner), console.Counted(int(d.Leases), "lease"), console.Percent(d.Share), console.Shown(d.Owner))
	}
	return o.Await(ctx, c, d, wait, func() string { return drainedText(d) }, unfinished, func(err error) error {
		switch {
		case errors.Is(err, admin.ErrDrainEnded):
			return fmt.Errorf("the drain of %s has ended: it was cancelled, or a manager failed before the owner received it\nCheck with 'leasehold owner list', and repeat the drain if necessary.", console.Shown(d.Owner))
		case errors.Is(err, admin.ErrStateLost):
			return fmt.Errorf("%s left with %s: the state of up to %s of the keys is lost\nIts process ended before all state had moved; 'leasehold key history' shows the history of a key.",
				console.Shown(d.Owner), console.Counted(int(d.Leases), "lease"), console.Percent(d.Lost))
		}
		return nil
	})
}

func drainText(d *admin.Drain, p admin.Progress) string {
	if p.Gone {
		return console.Shown(d.Owner) + " has left; its leases are ending"
	}
	return fmt.Sprintf("%s has %s, %s of the keys; %s, %s sent",
		console.Shown(d.Owner), console.Counted(int(d.Leases), "lease"), console.Percent(d.Share), console.Counted(p.Moves, "move"), humanize.IBytes(d.Sent))
}

func drainedText(d *admin.Drain) string {
	took := console.Brief(time.Duration(d.Elapsed))
	if d.Outcome == admin.OutcomeLeft {
		return fmt.Sprintf("%s has %s after %s: its process has ended\n", console.Shown(d.Owner), console.Good("left"), took)
	}
	return fmt.Sprintf("%s %s in %s: it owns nothing, and receives nothing until its process ends or 'leasehold owner drain %s --cancel'\n",
		console.Good("drained"), console.Shown(d.Owner), took, console.Shown(d.Owner))
}
