package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	// (its process has ended), cancelled, or if the waiting ended first, unfinished.
	Outcome string        `json:"outcome"`
	Leases  uint32        `json:"leases"` // that it has
	Share   float64       `json:"share"`  // of the key space that it has
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

// beginDrain works out what a drain moves, sees whether that is what people want,
// and begins. It returns how the owner was before.
func (c *client) beginDrain(ctx context.Context, to admin, d *drainDocument, o *orderOptions) (*leaseholdv1.OwnerStatus, error) {
	owners, err := c.listOwners(ctx, to)
	if err != nil {
		return nil, err
	}
	before, err := c.knownOwner(owners, d.Owner)
	if err != nil {
		return nil, err
	}
	request := &leaseholdv1.DrainOwnerRequest{Version: wire.Version, Namespace: c.namespace, Owner: d.Owner, DryRun: true}
	answer, err := to.DrainOwner(ctx, request)
	if err != nil {
		return nil, err
	}
	plan := planJSON(answer.GetPlan())
	d.Plan = &plan
	switch {
	case o.dryRun:
		return before, nil
	case before.GetLeases() > 0 && plan.Total == 0 && !o.noWait:
		return nil, failed{fmt.Errorf("nobody else can take the keys of %s: start another owner first\nWith --no-wait it is drained all the same, as soon as there is one", shown(d.Owner))}
	case !o.loseState:
		if err := plan.lossy("draining "+shown(d.Owner), owners); err != nil {
			return nil, err
		}
	}
	request.DryRun, request.LoseState = false, o.loseState
	_, err = to.DrainOwner(ctx, request)
	return before, err
}

// awaitDrain waits until the owner has nothing any more.
func (c *client) awaitDrain(ctx context.Context, d *drainDocument, before *leaseholdv1.OwnerStatus, o *orderOptions) error {
	begun := time.Now()
	var sent sentTally
	_, err := c.await(ctx, o.within, func(ctx context.Context, to admin) (sight, error) {
		return c.lookAtDrain(ctx, to, d, before, &sent)
	})
	d.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
	if err == nil {
		return c.print(d, d.text)
	}
	d.Outcome = "unfinished"
	goesOn := fmt.Sprintf("%s still has %s, %s of the keys. The drain goes on; see 'leasehold moves', or end it with 'leasehold drain %s --cancel'.",
		shown(d.Owner), counted(int(d.Leases), "lease"), percent(d.Share), shown(d.Owner))
	if c.json {
		if err := write(c.out, jsonText(d)); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, statusInterrupted):
		c.errs.say("%s\n", goesOn)
		return err
	case errors.Is(err, timeUp{}):
		return failed{fmt.Errorf("it was not done within %v\n%s", o.within, goesOn)}
	}
	return err
}

// lookAtDrain says how far a drain is, and keeps it in the document.
func (c *client) lookAtDrain(ctx context.Context, to admin, d *drainDocument, before *leaseholdv1.OwnerStatus, sent *sentTally) (sight, error) {
	owners, err := c.listOwners(ctx, to)
	if err != nil {
		return sight{}, err
	}
	moves, err := to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: c.namespace})
	if err != nil {
		return sight{}, err
	}
	var count int
	count, d.Sent = sent.add(moves.GetMoves(), func(m *leaseholdv1.MoveStatus) bool { return m.GetFrom() == d.Owner && m.GetTo() != d.Owner })
	now := ownerNamed(owners, d.Owner)
	d.Leases, d.Share = now.GetLeases(), now.GetShare()
	switch {
	case now == nil || string(now.GetHolder().GetSession()) != string(before.GetHolder().GetSession()):
		d.Outcome = "left"
		return sight{done: true}, nil
	case now.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER && !now.GetDraining():
		return sight{}, failed{fmt.Errorf("%s is no longer drained: somebody has cancelled it, or a manager died before the owner heard of it\nLook with 'leasehold owners', and drain it again if that is meant", shown(d.Owner))}
	case now.GetDraining() && now.GetLeases() == 0:
		d.Outcome = "drained"
		return sight{done: true}, nil
	}
	return sight{
		share: 1 - now.GetShare()/max(before.GetShare(), now.GetShare(), 1e-18),
		text: fmt.Sprintf("%s has %s, %s of the keys; %s, %s sent",
			shown(d.Owner), counted(int(now.GetLeases()), "lease"), percent(now.GetShare()), counted(count, "move"), byteText(d.Sent)),
	}, nil
}

func (d *drainDocument) text() string {
	if d.Outcome == "left" {
		return fmt.Sprintf("%s has %s after %s: its process has ended\n", shown(d.Owner), good("left"), seconds(d.Seconds))
	}
	return fmt.Sprintf("%s %s in %s: it has nothing, and gets nothing until its process ends or 'leasehold drain %s --cancel'\n",
		good("drained"), shown(d.Owner), seconds(d.Seconds), shown(d.Owner))
}
