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
	s := &ownerStream{outbox: newOutbox(), replaced: make(chan struct{})}
	o.register(ann, s)
	for seq := range protocol.Seq(3) {
		o.send(ann, leaseReply{&protocol.LeaseReply{Seq: seq + 1}})
	}
	if got, ok := s.outbox.take().(leaseReply); !ok || got.Seq != 3 {
		t.Errorf("%+v waits", got)
	}
	if more := s.outbox.take(); more != nil {
		t.Errorf("%+v waits besides", more)
	}
}

// A session has one stream: that which came last.
func TestNewestStreamIsASessions(t *testing.T) {
	o := newOwners(2)
	ann := protocol.Speaker{Namespace: "n", Owner: "ann", Session: leasehold.Session{1}}
	var streams [2]*ownerStream
	for i := range streams {
		streams[i] = &ownerStream{outbox: newOutbox(), replaced: make(chan struct{})}
		o.register(ann, streams[i])
	}
	o.send(ann, leaseReply{&protocol.LeaseReply{Seq: 1}})
	if streams[0].outbox.take() != nil || streams[1].outbox.take() == nil {
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

// Owners of a namespace are told who serves it, unless there is something else to say to them.
func TestAnnounce(t *testing.T) {
	o := newOwners(4)
	streams := make(map[string]*ownerStream)
	for i, name := range []string{"ann", "bob", "cat", "eve"} {
		in := leasehold.Namespace("n")
		if name == "eve" {
			in = "other"
		}
		streams[name] = &ownerStream{outbox: newOutbox(), replaced: make(chan struct{})}
		o.register(protocol.Speaker{Namespace: in, Owner: leasehold.OwnerID(name), Session: leasehold.Session{byte(i + 1)}}, streams[name])
	}
	streams["bob"].outbox.put(leaseReply{&protocol.LeaseReply{Seq: 1}})
	streams["cat"].outbox.put(notLeader{protocol.NotLeader{Term: 2}}) // it has asked too soon
	o.announce("n", notLeader{protocol.NotLeader{Term: 2, Leader: "m"}})
	for _, name := range []string{"ann", "cat"} {
		if got, ok := streams[name].outbox.take().(notLeader); !ok || got.Term != 2 || got.Leader != "m" {
			t.Errorf("%s is told %+v", name, got)
		}
	}
	if _, ok := streams["bob"].outbox.take().(leaseReply); !ok {
		t.Error("bob is not told what is more important")
	}
	if got := streams["eve"].outbox.take(); got != nil {
		t.Errorf("eve, who is in another namespace, is told %+v", got)
	}
}

// A stream whose handler has returned is not known any more, whatever is heard on it then.
func TestHeardAfterItLeft(t *testing.T) {
	o, l := newOwners(1), newLookups(1)
	s := &ownerStream{outbox: newOutbox(), replaced: make(chan struct{})}
	o.leave(s)
	o.register(protocol.Speaker{Namespace: "n", Owner: "ann", Session: leasehold.Session{1}}, s)
	follows, err := l.admit("", nil)
	if err != nil {
		t.Fatal(err)
	}
	l.leave(follows)
	l.subscribe(0, follows, "n")
	if len(o.streams) != 0 || l.connected("n") != 0 || len(l.fanouts) != 0 {
		t.Errorf("%d owners and %d lookups are known that have gone", len(o.streams), l.connected("n"))
	}
}
