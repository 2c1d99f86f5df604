package flease

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// A node executes steps under one lock: a step passes an input to the machine, applies
// the machine's notices to leases and claims, and sends the machine's messages. Wakeups
// of goroutines and logging are deferred until the lock is released.

// step executes a step, and sends the messages.
func (n *Node) step(do func(now machine.Time)) {
	n.mu.Lock()
	now := n.now()
	do(now)
	n.process(now)
	n.machine.Flush(now, n.net.Send)
	n.net.Flush()
	n.unlock(now)
}

// receive executes the step of a packet. The transport calls flush when no more packets
// have arrived, which sends the messages.
func (n *Node) receive(e *machine.Envelope, msgs []machine.Message, from *fleasenet.Source) {
	if failpoint.Drop("flease/packet-received") {
		return
	}
	n.mu.Lock()
	now := n.now()
	n.source = from
	n.roster.heard(now, e)
	if answer, ok := n.machine.Receive(now, e, msgs); ok {
		from.Reply(&answer)
	}
	n.process(now)
	n.source = nil
	n.unlock(now)
}

func (n *Node) flush() {
	n.mu.Lock()
	now := n.now()
	n.observe(now)
	n.machine.Flush(now, n.net.Send)
	n.net.Flush()
	n.unlock(now)
}

func (n *Node) unlock(now machine.Time) {
	if at := n.machine.Wake(now); at < n.timer.at {
		n.timer.at = at
		select {
		case n.timer.rearm <- struct{}{}:
		default:
		}
	}
	after := n.deferred
	n.deferred = deferredWork{}
	n.mu.Unlock()
	for _, b := range after.wake {
		close(b.done)
	}
	n.log.write(&after)
}

// now reads the clocks. If the computer was suspended, the machine processes that first.
func (n *Node) now() machine.Time {
	now, sleeps := n.time.read()
	if sleeps != n.sleeps {
		n.sleeps = sleeps
		n.note(0, slog.LevelWarn, "the computer was suspended: all leases are dropped")
		n.machine.Slept(now)
		n.handleNotices(now, slept)
		n.process(now)
	}
	return now
}

// observe passes the time to the machine before a new request, so that notices about
// clocks apply only to earlier requests.
func (n *Node) observe(now machine.Time) {
	n.machine.Observe(now)
	n.process(now)
}

// process handles notices and starts claims, until neither the machine nor a batch has
// more.
func (n *Node) process(now machine.Time) {
	for n.handleNotices(now, notRenewed) {
		pending := n.requests.pending
		n.requests.pending, n.requests.spare = n.requests.spare[:0], nil
		for _, b := range pending {
			n.advance(now, b)
		}
		clear(pending)
		n.requests.spare = pending
	}
}

// handleNotices handles the machine's notices, and reports whether there may be more. Why
// is the reason for lost leases, unless a notice about a clock precedes them.
func (n *Node) handleNotices(now machine.Time, why ending) bool {
	notes := n.machine.Notices()
	for i := range notes {
		n.handle(now, &notes[i], &why)
	}
	return len(notes) > 0 || len(n.requests.pending) > 0
}

// handle handles one notice. It sets why to the reason of the losses that follow it.
func (n *Node) handle(now machine.Time, notice *machine.Notice, why *ending) {
	e, _ := notice.Tag.(*entry) // set in notices about bids
	switch notice.What {
	case machine.Acquired:
		n.acquired(now, e, notice)
	case machine.Renewed:
		if e.lease != nil {
			e.lease.extend(notice.Lease.Until)
		}
	case machine.Lost:
		n.lost(now, e, *why)
	case machine.Refused, machine.Unreachable, machine.Disputed, machine.Released:
		n.handleReply(now, e, notice)
	case machine.Changed:
		n.signal(notice.Name)
	case machine.Ready:
		n.life.setReady()
	case machine.GaveWay:
		n.giveWay()
		*why = gaveWay
	case machine.Stopped:
		n.endReleases(e, errUnacked(e.name))
		n.bid(now, e) // fails with the reason
	default:
		*why = n.handleClock(notice)
	}
}

// runTimer advances the machine at its wake times, and at least every tick.
func (n *Node) runTimer(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-n.timer.rearm:
		}
		failpoint.Here("flease/before-its-time")
		var wait time.Duration
		n.step(func(now machine.Time) {
			n.machine.Advance(now)
			n.process(now)
			wait = min(tick, max(0, n.machine.Wake(now).Sub(now.Mono)), n.greet(now))
			n.timer.at = now.Mono.Add(wait)
		})
		timer.Reset(wait)
	}
}

// A timepiece is both clocks of the computer.
type timepiece interface {
	// read returns the time of both clocks, and the number of detected suspends. It is
	// safe for concurrent use.
	read() (now machine.Time, sleeps uint64)
	// watch calls slept soon after each suspend, until the context ends.
	watch(ctx context.Context, slept func())
}

// timeOf converts a time of the wall clock; 0 is the zero time.
func timeOf(w machine.Wall) time.Time {
	if w == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(w))
}

type systemTime struct {
	clock    *clock.Clock
	detector *clock.Detector
}

func newSystemTime(c *clock.Clock) *systemTime {
	c = cmp.Or(c, clock.New())
	return &systemTime{clock: c, detector: clock.NewDetector(c)}
}

func (s *systemTime) read() (machine.Time, uint64) {
	now, wall := s.clock.Both()
	return machine.Time{Mono: now, Wall: machine.Wall(wall.UnixNano())}, s.detector.Epoch(now)
}

func (s *systemTime) watch(ctx context.Context, slept func()) { s.detector.Watch(ctx, slept) }
