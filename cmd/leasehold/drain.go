package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const drainHelp = `Has all keys of an owner moved to others, with their state, and waits until that
is done. The owner serves its keys until each of them has moved, and gets no more
of them until its process ends or the drain is cancelled.

State can be moved if the owner and whoever takes it were started with a mover.
If not, it is lost, and the drain is refused unless --lose-state is given.

Ctrl-C ends the waiting, not the drain; --cancel ends the drain.`

const drainExample = `  leasehold drain server-3 -n presence --dry-run
  leasehold drain server-3 -n presence --within 10m && ssh server-3 reboot
  leasehold drain server-3 -n presence --cancel`

func newDrainCommand() *cobra.Command {
	cancel := false
	cmd := &cobra.Command{
		Use:     "drain OWNER",
		Short:   "Move everything away from an owner",
		Long:    drainHelp,
		Example: drainExample,
		Args:    oneArgument("the name of an owner"),
	}
	o := addOrderFlags(cmd).canWait(cmd)
	cmd.Flags().BoolVar(&cancel, "cancel", false, "let the owner take part again; what has moved stays where it is for now")
	for _, other := range []string{"dry-run", "lose-state", "no-wait", "within"} {
		cmd.MarkFlagsMutuallyExclusive("cancel", other)
	}
	c := newClient(cmd).inNamespace(cmd, usualNamespace)
	cmd.ValidArgsFunction = c.completeOwner
	cmd.RunE = c.run(func(ctx context.Context, args []string) error {
		if err := o.validate(); err != nil {
			return err
		}
		if cancel {
			return c.undrain(ctx, args[0])
		}
		return c.drain(ctx, args[0], o)
	})
	return cmd
}

// A drainDocument is what "drain --json" prints.
type drainDocument struct {
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"`
	// Outcome is planned (with --dry-run), begun (with --no-wait), drained, left
	// (its process has ended), lost (it has, and state with it), cancelled, or if the
	// waiting ended first, unfinished.
	Outcome string        `json:"outcome"`
	Leases  uint32        `json:"leases"`              // that it has, or had when it was last seen
	Share   float64       `json:"share"`               // of the key space that these are
	Lost    float64       `json:"shareLost,omitempty"` // of the key space, whose state went with its process
	Sent    uint64        `json:"sentBytes"`
	Seconds float64       `json:"seconds"`
	Plan    *planDocument `json:"plan,omitempty"`
}

func (c *client) undrain(ctx context.Context, owner string) error {
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) error {
		owners, err := c.listOwners(ctx, to)
		if err != nil {
			return err
		}
		if _, err := c.knownOwner(owners, owner); err != nil {
			return err
		}
		_, err = to.DrainOwner(ctx, &leaseholdv1.DrainOwnerRequest{Version: wire.Version, Namespace: c.namespace, Owner: owner, Cancel: true})
		return err
	}); err != nil {
		return err
	}
	return c.print(drainDocument{Namespace: c.namespace, Owner: owner, Outcome: "cancelled"},
		func() string { return fmt.Sprintf("%s: %s takes part again\n", good("cancelled"), shown(owner)) })
}

func (c *client) drain(ctx context.Context, owner string, o *orderOptions) error {
	d := &drainDocument{Namespace: c.namespace, Owner: owner}
	var before *leaseholdv1.OwnerStatus
	if err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
		d.Namespace = c.namespace
		before, err = c.beginDrain(ctx, to, d, o)
		return err
	}); err != nil {
		return err
	}
	d.Leases, d.Share = before.GetLeases(), before.GetShare()
	switch {
	case o.dryRun:
		d.Outcome = "planned"
		return c.print(d, d.Plan.text)
	case o.noWait:
		d.Outcome = "begun"
		return c.print(d, func() string {
			return fmt.Sprintf("draining %s: %s, %s of the keys\n", shown(owner), counted(int(d.Leases), "lease"), percent(d.Share))
		})
	}
	return c.awaitDrain(ctx, d, before, o)
}

// beginDrain has a drain begun, or says what it would move. It returns how the
// owner was before. It is one question to the leader, unless that refuses.
func (c *client) beginDrain(ctx context.Context, to admin, d *drainDocument, o *orderOptions) (*leaseholdv1.OwnerStatus, error) {
	owners, err := c.listOwners(ctx, to)
	if err != nil {
		return nil, err
	}
	before, err := c.knownOwner(owners, d.Owner)
	if err != nil {
		return nil, err
	}
	if before.GetLeases() > 0 && !othersTake(owners, d.Owner) && !o.noWait {
		return nil, failed{fmt.Errorf("nobody else can take the keys of %s: start another owner first\nWith --no-wait it is drained all the same, as soon as there is one", shown(d.Owner))}
	}
	request := &leaseholdv1.DrainOwnerRequest{Version: wire.Version, Namespace: c.namespace, Owner: d.Owner, DryRun: o.dryRun, LoseState: o.loseState}
	answer, err := to.DrainOwner(ctx, request)
	if err != nil {
		return nil, whyRefused(err, "draining "+shown(d.Owner), owners, func() (*leaseholdv1.Plan, error) {
			request.DryRun = true
			answer, err := to.DrainOwner(ctx, request)
			return answer.GetPlan(), err
		})
	}
	plan := planJSON(answer.GetPlan())
	d.Plan = &plan
	return before, nil
}

func (d *drainDocument) text() string {
	if d.Outcome == "left" {
		return fmt.Sprintf("%s has %s after %s: its process has ended\n", shown(d.Owner), good("left"), seconds(d.Seconds))
	}
	return fmt.Sprintf("%s %s in %s: it has nothing, and gets nothing until its process ends or 'leasehold drain %s --cancel'\n",
		good("drained"), shown(d.Owner), seconds(d.Seconds), shown(d.Owner))
}
