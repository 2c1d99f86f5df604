package owner

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A recluse is an owner without other owners, over real connections: with the
// default listener, and without a machine.
type recluse struct {
	*migration
	self   *table.Holder
	events chan machine.Event // for the machine
	// before, if set, is called before each event, on the goroutine
	// that posts it.
	before func(machine.Event)
}

func newRecluse(t *testing.T, log *eventLog, m *Mover) *recluse {
	t.Helper()
	r := &recluse{self: &table.Holder{Owner: "server-1", Session: leasehold.Session{1}, Addr: "127.0.0.1:1"}, events: make(chan machine.Event, 16)}
	cfg := Config{Namespace: testNamespace, Managers: []string{"127.0.0.1:7400"}, Addr: r.self.Addr, Mover: m}
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	if err := cfg.listen(); err != nil {
		t.Fatal(err)
	}
	post := func(e machine.Event) bool {
		if r.before != nil {
			r.before(e)
		}
		r.events <- e
		return true
	}
	r.migration = newMigration(&cfg, r.self.Session, newCallbacks(&cfg, log.logger()), newCalls(), nil, post, func() []leasehold.Lease { return nil })
	return r
}

// move starts a move of the recluse to itself.
func (r *recluse) move(ticket protocol.Ticket, keys leasehold.Range) {
	r.act(machine.StartMove{Departure: protocol.Departure{Ticket: ticket, Range: keys, To: r.self, Mover: r.Advertise}})
	r.act(machine.Expect{Arrival: protocol.Arrival{Ticket: ticket, Range: keys, From: r.self}})
}

func (r *recluse) close(t *testing.T) {
	t.Helper()
	r.migration.close()
	if err := r.await(t.Context()); err != nil {
		t.Error(err)
	}
}

// An owner moves a range to itself, as when leases are merged, with a leader
// and a machine that accept everything.
func TestMoveToItself(t *testing.T) {
	joined := leasehold.Lease{Range: leasehold.Range{Start: 10, Limit: 40}, Generation: 8}
	var got []string
	alone := newRecluse(t, &eventLog{}, &Mover{
		Export: func(_ context.Context, out *Export) error {
			if to, addr := out.To(); to != "server-1" || addr != "127.0.0.1:1" {
				t.Errorf("the target is %s at %s", to, addr)
			}
			if err := out.Send([]byte("before")); err != nil {
				return err
			}
			if err := out.Stop(); err != nil {
				return err
			}
			return out.Send([]byte("after"))
		},
		Import: func(_ context.Context, in *Import) (func(leasehold.Lease), error) {
			if from, addr := in.From(); from != "server-1" || addr != "127.0.0.1:1" || in.Range() != joined.Range {
				t.Errorf("the source of %v is %s at %s", in.Range(), from, addr)
			}
			var aside []string
			for record, err := range in.Records() {
				if err != nil {
					return nil, err
				}
				aside = append(aside, string(record))
			}
			return func(l leasehold.Lease) { got = slices.Concat(aside, []string{l.String()}) }, nil
		},
	})
	m, ticket := alone.migration, protocol.Ticket{2}
	alone.move(ticket, joined.Range)
	answers := map[machine.Event][]machine.Action{
		machine.Copied{Ticket: ticket}:    {machine.Stop{Ticket: ticket}},
		machine.Imported{Ticket: ticket}:  {machine.Confirm{Ticket: ticket}},
		machine.Confirmed{Ticket: ticket}: {machine.EndMove{Ticket: ticket}, machine.Install{Ticket: ticket, Lease: joined}},
		machine.Installed{Ticket: ticket}: nil,
	}
	for len(answers) > 0 {
		event := <-alone.events
		actions, expected := answers[event]
		if !expected {
			t.Fatalf("unexpected or duplicate %T", event)
		}
		delete(answers, event)
		r := &protocol.LeaseRequest{Moves: []protocol.MoveReport{{Ticket: ticket}}}
		if p := m.progress(r).Moves[0]; event == (machine.Imported{Ticket: ticket}) && (p.Records != 2 || p.Bytes != 11) || r.Moves[0].Bytes > 0 {
			t.Errorf("progress %+v of %+v", p, r.Moves[0])
		}
		for _, a := range actions {
			m.act(a)
		}
	}
	alone.close(t)
	if diff := cmp.Diff([]string{"before", "after", joined.String()}, got); diff != "" {
		t.Errorf("installed (-want +got):\n%s", diff)
	}
}

// A leaving owner refuses state, and the source
// receives the reason.
func TestPartingRefusesState(t *testing.T) {
	for _, early := range []bool{true, false} {
		var log eventLog
		alone := newRecluse(t, &log, &Mover{
			Export: func(_ context.Context, out *Export) error { return out.Stop() },
			Import: func(ctx context.Context, _ *Import) (func(leasehold.Lease), error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
		})
		if early {
			alone.part()
		}
		ticket := protocol.Ticket{2}
		alone.move(ticket, leasehold.All)
		if !early {
			if event := <-alone.events; event != (machine.Copied{Ticket: ticket}) { // the transfer has started
				t.Errorf("the first event is %T", event)
			}
			alone.part()
		}
		if event := <-alone.events; event != (machine.GaveUp{Ticket: ticket}) {
			t.Errorf("unexpected %T", event)
		}
		alone.close(t)
		if log.count("this owner is leaving") == 0 {
			t.Errorf("events %q", log.lines)
		}
	}
}
