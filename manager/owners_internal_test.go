package manager

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// What an owner has not been sent is replaced by what is newer: it would drop the older one,
// or act on it although the leader has changed its mind.
func TestNewestMessageWaitsForAnOwner(t *testing.T) {
	o := newOwners(1)
	ann := protocol.Speaker{Namespace: "n", Owner: "ann", Session: leasehold.Session{1}}
	s := &ownerStream{mailbox: make(chan holdMessage, 1), replaced: make(chan struct{})}
	o.register(ann, s)
	for seq := range protocol.Seq(3) {
		o.send(ann, leaseReply{&protocol.LeaseReply{Seq: seq + 1}})
	}
	if got, ok := (<-s.mailbox).(leaseReply); !ok || got.Seq != 3 || len(s.mailbox) != 0 {
		t.Errorf("%+v waits, and %d besides", got, len(s.mailbox))
	}
}

// A session has one stream: that which came last.
func TestNewestStreamIsASessions(t *testing.T) {
	o := newOwners(2)
	ann := protocol.Speaker{Namespace: "n", Owner: "ann", Session: leasehold.Session{1}}
	var streams [2]*ownerStream
	for i := range streams {
		streams[i] = &ownerStream{mailbox: make(chan holdMessage, 1), replaced: make(chan struct{})}
		o.register(ann, streams[i])
	}
	o.send(ann, leaseReply{&protocol.LeaseReply{Seq: 1}})
	if len(streams[0].mailbox) != 0 || len(streams[1].mailbox) != 1 {
		t.Error("the older stream is spoken to")
	}
	select {
	case <-streams[0].replaced:
	default:
		t.Error("the older stream does not end")
	}
	o.leave(streams[0])
	if o.streams[ann] != streams[1] {
		t.Error("the older stream takes the newer one with it")
	}
}
