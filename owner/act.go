package owner

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// act carries out what the machine has decided, on the driver's goroutine.
func (o *Owner) act(now mono.Instant, actions []machine.Action) {
	var view *machine.View // of which the callbacks are told
	var ended []revocation
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Publish:
			failpoint.Here("owner/before-publishing")
			o.publish(a.View)
			failpoint.Here("owner/published")
			view = a.View
		case machine.Send:
			o.settle(a.Request)
			o.metrics.send(&o.heard, now, a.Request)
			o.tellRecall()
			if request := o.request(now, o.moving(a.Request)); !failpoint.Drop("owner/before-send") {
				o.link.Send(string(a.To), request)
			}
		case machine.RevokedLeases:
			ended = append(ended, revocation{a.Leases, a.Cause})
			o.metrics.revoke(len(a.Leases), a.Cause)
			o.recalled(a)
			failpoint.Here("owner/revoked")
		case machine.SuspendedLeases:
			view = o.machine.owner.View()
			o.metrics.suspend(len(a.Leases))
		case machine.ResumedLeases:
			view = o.machine.owner.View()
			o.metrics.resume(len(a.Leases))
		case machine.GrantedLeases: // the callbacks see it by what is published
			o.metrics.grant(len(a.Leases))
		case machine.FindPredecessor:
			o.findPredecessor(a.Incumbent)
		case machine.StartMove, machine.Stop, machine.EndMove, machine.Expect, machine.Confirm, machine.Install, machine.Discard:
			if o.moves != nil {
				o.moves.act(a)
			}
		case machine.Settle:
			o.promises.settle(a.Number)
		case machine.Parted:
			close(o.parted)
		case machine.Left:
			o.unheard = a.Unacknowledged
			close(o.left)
		case machine.Note:
			o.note(now, a)
		}
	}
	if view != nil {
		o.callbacks.change(view.Kept, view.Coming, ended, o.machine.owner.Suspended())
	}
}

// recalled begins a span for leases that the leader wants back. It ends when the leader
// is told that they are free: after those who rely on promises have had their time.
func (o *Owner) recalled(a machine.RevokedLeases) {
	if a.Cause != leasehold.CauseReleased || o.recall != nil || o.closing.Load() {
		return
	}
	_, o.recall = o.spanOf(context.Background(), "leasehold.recall")
	o.recall.SetAttributes(attribute.Int("leasehold.leases", len(a.Leases)), attribute.String("leasehold.range", a.Leases[0].Range.String()))
}

func (o *Owner) tellRecall() {
	if o.recall != nil {
		o.recall.End()
		o.recall = nil
	}
}

// moving adds to a request how far the moves are.
func (o *Owner) moving(r *protocol.LeaseRequest) *protocol.LeaseRequest {
	if o.moves == nil {
		return r
	}
	return o.moves.progress(r)
}

// publish makes a view the one that checks are made against. A renewal, which
// changes no lease, costs nothing but the new deadline.
func (o *Owner) publish(v *machine.View) {
	old := o.holding.Load()
	a := old.areas
	if !protocol.SameLeases(a.held, v.Leases) {
		a = newAreas(v.Leases)
	}
	o.holding.Store(&holding{until: v.Until, epoch: o.machine.Epoch(), areas: a, drift: v.Drift, coming: v.Coming, superseded: make(chan struct{})})
	close(old.superseded)
	if v.Until > old.until {
		o.metrics.renewed()
	}
}

// settle notices that the leader has accepted us.
func (o *Owner) settle(r *protocol.LeaseRequest) {
	if !o.machine.accepted(r) {
		return
	}
	if o.unsettled != nil {
		o.unsettled()
		o.unsettled = nil
	}
	select {
	case <-o.joined:
	default:
		o.notes.logger.Info("joined: the leader has accepted this owner", "term", r.Term)
		close(o.joined)
	}
}

func (o *Owner) note(now mono.Instant, n machine.Note) {
	o.notes.write(now, n)
	o.metrics.note(n.What)
	if n.What == machine.NoteServerRefuse {
		o.refuse(n.Kind, nil)
	}
}

// refuse ends Join if the leader will not change its mind. Later refusals end
// nothing: the leases run out if they last, and a leader that has recovered
// finds us still there.
func (o *Owner) refuse(kind leasehold.Kind, why error) {
	ns := string(o.cfg.Namespace)
	var err error
	switch kind {
	case leasehold.ErrNotFound:
		err = leasehold.Errorf(opJoin, kind, ns, "there is no such namespace: create it with \"leasehold namespace create %s\"", ns)
	case leasehold.ErrLimit:
		err = leasehold.Errorf(opJoin, kind, ns, "the namespace has as many owners as it may: raise its limit, or stop one that is not needed")
	case leasehold.ErrInvalid, leasehold.ErrDenied:
		err = &leasehold.Error{Op: opJoin, Kind: kind, Subject: ns, Err: why}
	default:
		return
	}
	select {
	case o.refused <- err:
	default: // Join has its answer, or has returned long ago
	}
}

// findPredecessor finds out whether the process of another session with our
// name is gone. It may be about to go, so it asks again until it is, or until
// that is of no interest any more.
func (o *Owner) findPredecessor(incumbent *table.Holder) {
	if o.unsettled != nil {
		o.unsettled()
		o.unsettled = nil
	}
	if o.cfg.WaitForPredecessor || !sameHost(incumbent.Addr, o.cfg.Addr) {
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	o.unsettled = cancel
	o.running.Go(func() {
		defer cancel()
		if awaitGone(ctx, incumbent.Process) {
			o.notes.logger.Info("the process that had this owner's name before is gone: its leases need not be waited for", "predecessor", incumbent.Session.Short())
			o.driver.Post(ctx, machine.PredecessorGone{Session: incumbent.Session})
		}
	})
}

// awaitGone waits until a process is gone, and reports false if the context
// ends first or it cannot be known.
func awaitGone(ctx context.Context, process string) bool {
	const usual, most = 50 * time.Millisecond, time.Second
	for wait := usual; ; wait = min(2*wait, most) {
		gone, knowable := processGone(process)
		if gone || !knowable {
			return gone
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}
