package manager

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/broadcast"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// unusedStream is a stream on which nothing is sent or received.
type unusedStream struct {
	grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]
}

func (unusedStream) Context() context.Context { return context.Background() }

// Requests of lookups leave room in the driver's queue for owners.
func TestLookupsLeaveRoomForOwners(t *testing.T) {
	const queue = 4
	m := &Manager{ctx: t.Context(), clock: clock.New(), lookups: broadcast.NewLookups(t.Context(), broadcast.Config{MaxStreams: queue})}
	m.driver = driver.New[managerproc.Event, managerproc.Action](m.clock, m.node, queue, m.act) // it does not run: all events are queued
	var all []*lookupHandler
	ask := func(seq protocol.Seq) {
		for _, h := range all {
			if err := h.handle(wire.FromLookupRequest(&protocol.LookupRequest{Namespace: "pool", Seq: seq})); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range queue {
		s, err := m.lookups.Open(unusedStream{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &lookupHandler{m: m, stream: s})
	}
	ask(1)
	if !m.driver.Offer(managerproc.Request{}) {
		t.Fatal("there is no room for an owner")
	}
	ask(2)
	ask(3)
	if n := m.driver.Waiting(); n != queue+1 {
		t.Errorf("%d queued events, want %d: the owner's, and one of each lookup", n, queue+1)
	}
}
