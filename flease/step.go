package flease

import (
	"context"
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// A node does everything under one lock, in steps: something is told to the
// machine, what the machine has to say is carried over to leases and claims, and
// what it has to send is sent. What wakes others, or may take long, is left for
// after the lock.

// step takes a step of its own, and sends what comes of it.
func (n *Node) step(do func(now machine.Time)) {
	n.mu.Lock()
	now := n.look()
	do(now)
	n.settle(now)
	n.machine.Flush(now, n.net.Send)
	n.net.Flush()
	n.unlock(now)
}

// receive takes the step of a packet. What comes of it is sent when no more
// packets are there: the transport calls flush then.
func (n *Node) receive(e *machine.Envelope, msgs []machine.Message, from *fleasenet.Source) {
	if failpoint.Drop("flease/packet-received") {
		return
	}
	n.mu.Lock()
	now := n.look()
	n.source = from
	n.roster.heard(now, e)
	if answer, ok := n.machine.Receive(now, e, msgs); ok {
		from.Reply(&answer)
	}
	n.settle(now)
	n.source = nil
	n.unlock(now)
}

func (n *Node) flush() {
	n.mu.Lock()
	now := n.look()
	n.observe(now)
	n.machine.Flush(now, n.net.Send)
	n.net.Flush()
	n.unlock(now)
}

func (n *Node) unlock(now machine.Time) {
	if at := n.machine.Wake(now); at < n.timer.at {
		n.timer.at = at
		select {
		case n.timer.rouse <- struct{}{}:
		default:
		}
	}
	after := n.after
	n.after = aftermath{}
	n.mu.Unlock()
	for _, b := range after.wake {
		close(b.done)
	}
	n.log.write(&after)
}

// look reads the clocks. The machine must hear of a sleep before anything else.
func (n *Node) look() machine.Time {
	now, sleeps := n.time.read()
	if sleeps != n.sleeps {
		n.sleeps = sleeps
		n.note(0, slog.LevelWarn, "the computer was suspended: all leases are dropped")
		n.machine.Slept(now)
		n.carry(now, slept)
		n.settle(now)
	}
	return now
}

// observe lets the machine look at the clocks before it is asked for something: what
// comes of that is about what it was asked for before.
func (n *Node) observe(now machine.Time) {
	n.machine.Observe(now)
	n.settle(now)
}

// settle carries over what the machine has to say, until neither it nor a batch
// has more.
func (n *Node) settle(now machine.Time) {
	for n.carry(now, notRenewed) {
		pending := n.requests.pending
		n.requests.pending, n.requests.spare = n.requests.spare[:0], nil
		for _, b := range pending {
			n.advance(now, b)
		}
		clear(pending)
		n.requests.spare = pending
	}
}

// carry carries over what the machine has to say, and reports whether there may be
// more. Why is the reason for leases that are lost, unless a clock is to blame.
func (n *Node) carry(now machine.Time, why ending) bool {
	notes := n.machine.Notices()
	for i := range notes {
		n.handle(now, &notes[i], &why)
	}
	return len(notes) > 0 || len(n.requests.pending) > 0
}

// handle handles one notice. Why is the reason for losses that follow it.
func (n *Node) handle(now machine.Time, note *machine.Notice, why *ending) {
	e, _ := note.Tag.(*entry) // those about bids have one
	switch note.What {
	case machine.Acquired:
		n.acquired(now, e, note)
	case machine.Renewed:
		if e.lease != nil {
			e.lease.extend(note.Lease.Until)
		}
	case machine.Lost:
		n.lost(now, e, *why)
	case machine.Refused, machine.Unreachable, machine.Disputed, machine.Released:
		n.answered(now, e, note)
	case machine.Changed:
		n.changed(note.Name)
	case machine.Ready:
		n.life.setReady()
	case machine.GaveWay:
		n.giveWay()
		*why = gaveWay
	case machine.Stopped:
		n.told(e, untold(e.name))
		n.ask(now, e) // and hears why not
	default:
		*why = n.trouble(note)
	}
}

// keepTime wakes the machine when it asks for it, and now and then.
func (n *Node) keepTime(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-n.timer.rouse:
		}
		failpoint.Here("flease/before-its-time")
		var wait time.Duration
		n.step(func(now machine.Time) {
			n.machine.Advance(now)
			n.settle(now)
			wait = min(tick, max(0, n.machine.Wake(now).Sub(now.Mono)), n.greet(now))
			n.timer.at = now.Mono.Add(wait)
		})
		timer.Reset(wait)
	}
}

// A timepiece shows both clocks of the computer.
type timepiece interface {
	// read returns what both clocks show, and how often the computer was found to
	// have slept. It may be called from many goroutines at once.
	read() (now machine.Time, sleeps uint64)
	// watch calls slept soon after each sleep, until the context ends.
	watch(ctx context.Context, slept func())
}

// timeOf is a time of the wall clock; the zero time if it is 0.
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

func newSystemTime() *systemTime {
	c := clock.New()
	return &systemTime{clock: c, detector: clock.NewDetector(c)}
}

func (s *systemTime) read() (machine.Time, uint64) {
	now, wall := s.clock.Both()
	return machine.Time{Mono: now, Wall: machine.Wall(wall.UnixNano())}, s.detector.Epoch(now)
}

func (s *systemTime) watch(ctx context.Context, slept func()) { s.detector.Watch(ctx, slept) }
