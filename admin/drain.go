package admin

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The outcomes of a Drain or a RangeMove.
const (
	OutcomePlanned    = "planned" // with DryRun
	OutcomeBegun      = "begun"
	OutcomeDrained    = "drained"
	OutcomeLeft       = "left" // the process of the owner has ended
	OutcomeLost       = "lost" // it has ended before all state had moved
	OutcomeMoved      = "moved"
	OutcomeUnfinished = "unfinished" // the wait ended first
	OutcomeCancelled  = "cancelled"
)

// A Drain moves all keys of an owner to others.
type Drain struct {
	Namespace string  `json:"namespace"`
	Owner     string  `json:"owner"`
	Outcome   string  `json:"outcome"`
	Leases    uint32  `json:"leases"`              // that the owner has, or had when it was last seen
	Share     float64 `json:"share"`               // of the key space, for these leases
	Lost      float64 `json:"shareLost,omitempty"` // of the key space, whose state was lost with the process
	Sent      uint64  `json:"sentBytes"`
	Elapsed   Seconds `json:"seconds"`
	Plan      *Plan   `json:"plan,omitempty"`

	client  *Client
	before  Owner
	mayLose bool
	sent    sentTally
	had     *Ranges // of the owner, at the first poll
}

// ErrNoTaker is the error of a drain without another owner to take the keys.
var ErrNoTaker = errors.New("no other owner can take the keys")

// Drain has all keys of an owner moved to others, with their state, and returns when that has
// begun. The owner serves each range until it has moved, and gets no more ranges until its process ends
// or CancelDrain. Without another owner to take the keys, the error is ErrNoTaker and the drain is not
// begun, unless alone is true: then the owner keeps its keys until there is one.
func (c *Client) Drain(ctx context.Context, namespace, owner string, options OrderOptions, alone bool) (*Drain, error) {
	d := &Drain{Namespace: namespace, Owner: owner, Outcome: options.Outcome(), client: c, mayLose: options.LoseState, sent: sentTally{}}
	var way delivery
	err := c.Do(ctx, func(ctx context.Context, s service) error {
		all, before, err := known(ctx, s, namespace, owner)
		if err != nil {
			return err
		}
		if before.Leases > 0 && !alone && !all.othersTake(owner) {
			return ErrNoTaker
		}
		plan, err := order("draining "+owner, options,
			func() (Owners, error) { return all, nil },
			func(o OrderOptions) (*leaseholdv1.Plan, error) {
				answer, err := s.DrainOwner(ctx, &leaseholdv1.DrainOwnerRequest{
					Version: wire.Version, Namespace: namespace, Owner: owner, DryRun: o.DryRun, LoseState: o.LoseState,
				})
				way.sent(o.DryRun, err)
				return answer.GetPlan(), err
			})
		d.Plan, d.before, d.Leases, d.Share = &plan, before, before.Leases, before.Share
		return err
	})
	return d, way.result(err)
}

// CancelDrain ends a drain: the owner gets ranges again. Ranges that have moved stay where they are until
// the next rebalance.
func (c *Client) CancelDrain(ctx context.Context, namespace, owner string) error {
	var way delivery
	return way.result(c.Do(ctx, func(ctx context.Context, s service) error {
		if _, _, err := known(ctx, s, namespace, owner); err != nil {
			return err
		}
		_, err := s.DrainOwner(ctx, &leaseholdv1.DrainOwnerRequest{Version: wire.Version, Namespace: namespace, Owner: owner, Cancel: true})
		way.sent(false, err)
		return err
	}))
}

// Errors of Drain.Wait.
var (
	// ErrDrainEnded means that the owner is no longer drained: the drain was cancelled, or a
	// manager crashed before the owner received it.
	ErrDrainEnded = errors.New("the owner is no longer drained")
	// ErrStateLost: the process of the owner ended before all of its state had moved.
	ErrStateLost = errors.New("the owner left before all of its state had moved")
)

// Wait waits until the owner has no leases, and updates d. When the context ends, the drain goes on.
func (d *Drain) Wait(ctx context.Context, report func(Progress, error)) error {
	begun := time.Now()
	err := d.client.wait(ctx, report, d.poll)
	d.Elapsed = Seconds(time.Since(begun).Round(time.Millisecond))
	if err != nil && d.Outcome != OutcomeLost {
		d.Outcome = OutcomeUnfinished
	}
	return err
}

func (d *Drain) poll(ctx context.Context, s service) (p Progress, done bool, err error) {
	if d.had == nil && !d.mayLose {
		had, err := ranges(ctx, s, d.Namespace, d.Owner)
		if err != nil {
			return p, false, err
		}
		d.had = &had
	}
	all, err := owners(ctx, s, d.Namespace)
	if err != nil {
		return p, false, err
	}
	now, found := all.Find(d.Owner)
	if !found || now.Session != d.before.Session {
		return d.left(ctx, s, found)
	}
	inProgress, err := moves(ctx, s, d.Namespace)
	if err != nil {
		return p, false, err
	}
	p.Moves, d.Sent = d.sent.add(inProgress, func(m Move) bool { return m.From == d.Owner && m.To != d.Owner })
	d.Leases, d.Share = now.Leases, now.Share
	switch {
	case now.State == OwnerMember && !now.Draining:
		return p, false, ErrDrainEnded
	case now.Draining && now.Leases == 0:
		d.Outcome = OutcomeDrained
		return p, true, nil
	}
	p.Left = now.Share
	p.Share = 1 - now.Share/max(d.before.Share, now.Share, 1e-18)
	return p, false, nil
}

// left determines the outcome for an owner whose process has ended. If it crashed, the leader first records
// the end of its leases. Another process may have taken its name.
func (d *Drain) left(ctx context.Context, s service, another bool) (p Progress, done bool, err error) {
	if d.mayLose {
		d.Outcome = OutcomeLeft
		return p, true, nil
	}
	now, err := ranges(ctx, s, d.Namespace, "")
	if err != nil {
		return p, false, err
	}
	lost, holds := d.had.lostSince(now, d.Owner, another)
	switch {
	case holds:
		return Progress{Gone: true}, false, nil
	case lost > 0:
		d.Outcome, d.Lost = OutcomeLost, lost
		return p, false, ErrStateLost
	}
	d.Outcome, d.Leases, d.Share = OutcomeLeft, 0, 0
	return p, true, nil
}
