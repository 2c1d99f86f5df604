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

// act executes the machine's actions, on the driver's goroutine.
func (o *Owner) act(now mono.Instant, actions []machine.Action) {
	var view *machine.View // for the callbacks; nil if unchanged
	var ended []revocation
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Publish:
			failpoint.Here("owner/before-publishing")
			o.publish(a.View)
			failpoint.Here("owner/published")
			view = a.View
		case machine.Send:
			o.metrics.send(&o.replies, now, a.Request)
			o.endRecallSpan()
			if request := o.request(now, o.withProgress(a.Request)); !failpoint.Drop("owner/before-send") {
				o.link.Send(string(a.To), request)
			}
		case machine.RevokedLeases:
			ended = append(ended, revocation{a.Leases, a.Cause})
			o.metrics.revoke(len(a.Leases), a.Cause)
			o.beginRecallSpan(a)
			failpoint.Here("owner/revoked")
		case machine.SuspendedLeases:
			view = o.machine.owner.View()
			o.metrics.suspend(len(a.Leases))
		case machine.ResumedLeases:
			view = o.machine.owner.View()
			o.metrics.resume(len(a.Leases))
		case machine.GrantedLeases: // Publish notifies the callbacks
			o.metrics.grant(len(a.Leases))
		case machine.Joined:
			o.onJoined(a.Term)
		case machine.FindPredecessor:
			o.findPredecessor(a.Incumbent)
		case machine.StartMove, machine.Stop, machine.EndMove, machine.Expect, machine.Confirm, machine.Install, machine.Discard:
			if o.moves != nil {
				o.moves.act(a)
			}
		case machine.Settle:
			o.promises.await(a.Number)
		case machine.Parted:
			close(o.parted)
		case machine.Left:
			o.unacknowledged = a.Unacknowledged
			close(o.left)
		case machine.Note:
			o.note(now, a)
		}
	}
	if view != nil {
		o.callbacks.change(view.Kept, view.Unserved(o.machine.owner.Suspended()), view.Coming, ended)
	}
}

// beginRecallSpan begins a span for recalled leases. It ends with the request that releases
// them, after all promises about them have expired.
func (o *Owner) beginRecallSpan(a machine.RevokedLeases) {
	if a.Cause != leasehold.CauseReleased || o.recall != nil || o.closing.Load() {
		return
	}
	_, o.recall = o.spanOf(context.Background(), "leasehold.recall")
	o.recall.SetAttributes(attribute.Int("leasehold.leases", len(a.Leases)), attribute.String("leasehold.range", a.Leases[0].Range.String()))
}

func (o *Owner) endRecallSpan() {
	if o.recall != nil {
		o.recall.End()
		o.recall = nil
	}
}

// withProgress adds the progress of the moves to a request.
func (o *Owner) withProgress(r *protocol.LeaseRequest) *protocol.LeaseRequest {
	if o.moves == nil {
		return r
	}
	return o.moves.progress(r)
}

// publish replaces the holding that checks read. A renewal, which
// changes no lease, reuses the index.
func (o *Owner) publish(v *machine.View) {
	old := o.holding.Load()
	a := old.areas
	if !protocol.SameLeases(a.held, v.Leases) {
		a = newAreas(v.Leases)
	}
	o.holding.Store(&holding{until: v.Until, epoch: o.machine.Epoch(), areas: a, view: v, superseded: make(chan struct{})})
	close(old.superseded)
	if v.Until > old.until {
		o.metrics.renewed()
	}
}

// onJoined ends Join.
func (o *Owner) onJoined(term leasehold.Term) {
	o.endPredecessorCheck()
	o.notes.waiting = false
	if !o.hasJoined() {
		o.notes.logger.Info("joined: the leader has accepted this owner", "term", term)
		close(o.joined)
	}
}

func (o *Owner) hasJoined() bool {
	select {
	case <-o.joined:
		return true
	default:
		return false
	}
}

func (o *Owner) note(now mono.Instant, n machine.Note) {
	if n.What == machine.NoteNameTaken {
		o.notes.nameTaken(now, o.responses.longestWait())
	} else {
		o.notes.write(now, n)
	}
	o.metrics.note(n.What)
	if n.What == machine.NoteServerRefuse {
		o.refuse(n.Kind, nil)
	}
}

// refuse ends Join if a retry cannot succeed, and reports whether it does. Refusals after Join have no effect: the leases
// reach their deadline if the refusals continue, and a leader that has recovered renews them.
func (o *Owner) refuse(kind leasehold.Kind, why error) bool {
	ns := string(o.cfg.Namespace)
	var err error
	switch kind {
	case leasehold.ErrNotFound:
		err = leasehold.Errorf(opJoin, kind, ns, "the namespace does not exist: correct the name, or create it with 'leasehold namespace create %s'", ns)
	case leasehold.ErrLimit:
		err = leasehold.Errorf(opJoin, kind, ns, "the namespace has reached its limit of owners: raise the limit, or stop an owner")
	case leasehold.ErrInvalid, leasehold.ErrDenied:
		err = &leasehold.Error{Op: opJoin, Kind: kind, Subject: ns, Err: why}
	default:
		return false
	}
	select {
	case o.refused <- err:
	default: // Join has an error already, or has returned
	}
	return !o.hasJoined()
}

// findPredecessor waits in a goroutine until the process of another session with the same
// name has ended, and posts that to the machine. The goroutine ends when the leader accepts
// this owner or names another session.
func (o *Owner) findPredecessor(incumbent *table.Holder) {
	o.endPredecessorCheck()
	if o.cfg.WaitForPredecessor || !sameHost(incumbent.Addr, o.cfg.Addr) {
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	o.stopPredecessorCheck = cancel
	o.running.Go(func() {
		defer cancel()
		if awaitGone(ctx, incumbent.Process) {
			o.notes.logger.Info("predecessor's process has ended: its leases can be taken over at once", "predecessor", incumbent.Session.Short())
			o.driver.Post(ctx, machine.PredecessorGone{Session: incumbent.Session})
		}
	})
}

func (o *Owner) endPredecessorCheck() {
	if o.stopPredecessorCheck != nil {
		o.stopPredecessorCheck()
		o.stopPredecessorCheck = nil
	}
}

// awaitGone polls until a process has ended. It reports false if the context
// ends first or the process is not visible from here.
func awaitGone(ctx context.Context, process string) bool {
	const minPoll, maxPoll = 50 * time.Millisecond, time.Second
	for poll := minPoll; ; poll = min(2*poll, maxPoll) {
		gone, visible := processGone(process)
		if gone || !visible {
			return gone
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(poll):
		}
	}
}
