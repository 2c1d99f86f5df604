package owner

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// An owner moves a range to itself, which is how leases are joined, over a real
// connection: with a listener where it is by default, and a leader and a machine
// that agree to everything.
func TestMoveToItself(t *testing.T) {
	joined := leasehold.Lease{Range: leasehold.Range{Start: 10, Limit: 40}, Generation: 8}
	var got []string
	cfg := Config{Namespace: testNamespace, Managers: []string{"manager:1"}, Addr: "127.0.0.1:1", Mover: &Mover{
		Export: func(_ context.Context, out *Export) error {
			if to, addr := out.To(); to != "server-1" || addr != "127.0.0.1:1" {
				t.Errorf("goes to %s at %s", to, addr)
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
				t.Errorf("%v comes from %s at %s", in.Range(), from, addr)
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
	}}
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	if err := cfg.listen(); err != nil {
		t.Fatal(err)
	}
	session, ticket := leasehold.Session{1}, protocol.Ticket{2}
	events := make(chan machine.Event, 16)
	post := func(e machine.Event) bool { events <- e; return true }
	m := newMigration(&cfg, session, slog.New(slog.DiscardHandler), post, func() []leasehold.Lease { return nil })
	self := &table.Holder{Owner: "server-1", Session: session, Addr: "127.0.0.1:1"}
	m.act(machine.StartMove{Departure: protocol.Departure{Ticket: ticket, Range: joined.Range, To: self, Mover: cfg.Mover.Advertise}})
	m.act(machine.Expect{Arrival: protocol.Arrival{Ticket: ticket, Range: joined.Range, From: self}})
	answers := map[machine.Event][]machine.Action{
		machine.Copied{Ticket: ticket}:    {machine.Stop{Ticket: ticket}},
		machine.Imported{Ticket: ticket}:  {machine.Confirm{Ticket: ticket}},
		machine.Confirmed{Ticket: ticket}: {machine.EndMove{Ticket: ticket}, machine.Install{Ticket: ticket, Lease: joined}},
		machine.Installed{Ticket: ticket}: nil,
	}
	for len(answers) > 0 {
		event := <-events
		actions, expected := answers[event]
		if !expected {
			t.Fatalf("%T comes, or comes twice", event)
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
	m.close()
	if err := m.await(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"before", "after", joined.String()}, got); diff != "" {
		t.Errorf("installed (-want +got):\n%s", diff)
	}
}
