package owner

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

var (
	movedTicket = protocol.Ticket{2}
	movedLease  = leasehold.Lease{Range: leasehold.Range{Start: 10, Limit: 40}, Generation: 8}
)

// empty is a Mover of ranges without state.
func empty(install func(leasehold.Lease)) *Mover {
	return &Mover{
		Export: func(_ context.Context, out *Export) error { return out.Stop() },
		Import: func(_ context.Context, in *Import) (func(leasehold.Lease), error) {
			for _, err := range in.Records() {
				if err != nil {
					return nil, err
				}
			}
			return install, nil
		},
	}
}

// until replies to the events as the machine would, up to an event.
func (r *recluse) until(t *testing.T, last machine.Event) {
	t.Helper()
	for {
		switch event := <-r.events; event {
		case last:
			return
		case machine.Copied{Ticket: movedTicket}:
			r.act(machine.Stop{Ticket: movedTicket})
		case machine.Imported{Ticket: movedTicket}, machine.GaveUp{Ticket: movedTicket}:
		default:
			t.Fatalf("unexpected %#v", event)
		}
	}
}

// If the state was refused after it has arrived and before it is
// confirmed, install fails: otherwise no server would ever serve the range.
func TestInstallAfterRefusal(t *testing.T) {
	for _, over := range []bool{true, false} { // with and without a goroutine that waits for it
		var log eventLog
		alone := newRecluse(t, &log, empty(func(leasehold.Lease) { t.Error("installed") }))
		alone.move(movedTicket, movedLease.Range)
		alone.until(t, machine.Imported{Ticket: movedTicket})
		alone.part() // not confirmed yet
		if over {
			alone.running.Wait()
		}
		alone.act(machine.Confirm{Ticket: movedTicket})
		alone.act(machine.Install{Ticket: movedTicket, Lease: movedLease})
		alone.until(t, machine.Installed{Ticket: movedTicket, Failed: true})
		alone.close(t)
		if log.count("state of a range is lost") != 1 {
			t.Errorf("events %q", log.lines)
		}
	}
}

// Install fails after the arrival's goroutine has ended.
func TestInstallAfterEnd(t *testing.T) {
	alone := newRecluse(t, &eventLog{}, empty(func(leasehold.Lease) { t.Error("installed") }))
	alone.move(movedTicket, movedLease.Range)
	alone.until(t, machine.Imported{Ticket: movedTicket})
	alone.act(machine.Confirm{Ticket: movedTicket})
	alone.until(t, machine.Confirmed{Ticket: movedTicket})
	alone.act(machine.EndMove{Ticket: movedTicket})
	alone.server.Close()
	alone.running.Wait()
	alone.act(machine.Install{Ticket: movedTicket, Lease: movedLease})
	alone.until(t, machine.Installed{Ticket: movedTicket, Failed: true})
	alone.close(t)
}

// A lease that is granted while the arrival ends is installed or fails.
func TestInstallDuringEnd(t *testing.T) {
	for range 8 {
		alone := newRecluse(t, &eventLog{}, empty(nil))
		alone.before = func(e machine.Event) {
			if e == (machine.Imported{Ticket: movedTicket}) {
				alone.act(machine.Confirm{Ticket: movedTicket})
				alone.act(machine.Install{Ticket: movedTicket, Lease: movedLease})
				alone.server.Close()
			}
		}
		alone.move(movedTicket, movedLease.Range)
		for answered := false; !answered; {
			switch (<-alone.events).(type) {
			case machine.Copied:
				alone.act(machine.Stop{Ticket: movedTicket})
			case machine.Installed:
				answered = true
			}
		}
		alone.close(t)
		if n := len(alone.callbacks.deferred); n > 0 {
			t.Errorf("the ends of %d leases are deferred forever", n)
		}
	}
}

// An install that Close does not wait for is not logged as slow.
func TestCloseWhileInstalling(t *testing.T) {
	var log eventLog
	begun, calm := make(chan struct{}), make(chan struct{})
	alone := newRecluse(t, &log, empty(func(leasehold.Lease) { close(begun); <-calm }))
	alone.move(movedTicket, movedLease.Range)
	alone.until(t, machine.Imported{Ticket: movedTicket})
	alone.act(machine.Confirm{Ticket: movedTicket})
	alone.until(t, machine.Confirmed{Ticket: movedTicket})
	alone.act(machine.EndMove{Ticket: movedTicket})
	alone.act(machine.Install{Ticket: movedTicket, Lease: movedLease})
	<-begun
	alone.migration.close()
	alone.until(t, machine.Installed{Ticket: movedTicket, Failed: true})
	close(calm)
	if err := alone.await(t.Context()); err != nil {
		t.Error(err)
	}
	if log.count("this owner was closed") != 1 || log.count("has not returned") > 0 || log.count("state of a range imported") > 0 {
		t.Errorf("events %q", log.lines)
	}
}
