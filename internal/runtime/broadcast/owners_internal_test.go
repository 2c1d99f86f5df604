package broadcast

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A holdStream records the messages to an owner.
type holdStream struct {
	grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	onSend func()
	sent   []*leaseholdv1.HoldResponse
}

func (s *holdStream) Context() context.Context { return context.Background() }

func (s *holdStream) SendMsg(m any) error {
	s.sent = append(s.sent, m.(*leaseholdv1.HoldResponse))
	if s.onSend != nil {
		s.onSend()
	}
	return nil
}

// connectOwner registers a stream of an owner.
func connectOwner(t *testing.T, o *Owners, at protocol.Speaker) (*Owner, *holdStream) {
	t.Helper()
	stream := &holdStream{}
	s, err := o.Open(stream)
	if err != nil {
		t.Fatal(err)
	}
	s.Register(at)
	return s, stream
}

func speaker(ns leasehold.Namespace, owner leasehold.OwnerID) protocol.Speaker {
	return protocol.Speaker{Namespace: ns, Owner: owner, Session: leasehold.Session{1}}
}

// A newer message replaces one that was not sent: the owner would discard the older one, or act on
// it although the leader has decided otherwise.
func TestNewestMessageWaitsForAnOwner(t *testing.T) {
	o := NewOwners(t.Context(), Config{MaxStreams: 1})
	ann := speaker("n", "ann")
	s, stream := connectOwner(t, o, ann)
	for seq := range protocol.Seq(3) {
		o.Reply(ann, &protocol.LeaseReply{Seq: seq + 1})
	}
	if err := s.flush(); err != nil || len(stream.sent) != 1 || stream.sent[0].GetGrant().GetSeq() != 3 {
		t.Errorf("sent: %v, %v", stream.sent, err)
	}
}

// One goroutine at a time sends to an owner; messages that are added meanwhile are sent after it.
func TestOneSenderPerOwner(t *testing.T) {
	o := NewOwners(t.Context(), Config{MaxStreams: 1})
	ann := speaker("n", "ann")
	s, stream := connectOwner(t, o, ann)
	stream.onSend = func() {
		if len(stream.sent) > 1 {
			return
		}
		o.Reply(ann, &protocol.LeaseReply{Seq: 2})
		if _, err := s.Respond(func() bool { return true }); err != nil || s.flush() != nil || len(stream.sent) > 1 {
			t.Errorf("two goroutines send at a time: %v", err)
		}
	}
	o.Reply(ann, &protocol.LeaseReply{Seq: 1})
	if err := s.flush(); err != nil || len(stream.sent) != 2 || s.queue.state != idle {
		t.Errorf("sent: %v, %v", stream.sent, err)
	}
}

// A session has one stream: the newest.
func TestNewestStreamIsASessions(t *testing.T) {
	o := NewOwners(t.Context(), Config{MaxStreams: 2})
	ann := speaker("n", "ann")
	older, _ := connectOwner(t, o, ann)
	newer, _ := connectOwner(t, o, ann)
	o.Reply(ann, &protocol.LeaseReply{Seq: 1})
	if older.queue.pending() || !newer.queue.pending() {
		t.Error("the older stream is used")
	}
	select {
	case <-older.replaced:
	default:
		t.Error("the older stream does not end")
	}
	if older.leave(); o.streams[ann] != newer {
		t.Error("the older stream removes the newer one")
	}
}

// Announce redirects the owners of a namespace, except those for which another reply waits.
func TestAnnounce(t *testing.T) {
	o := NewOwners(t.Context(), Config{MaxStreams: 4})
	streams := make(map[leasehold.OwnerID]*holdStream)
	owners := make(map[leasehold.OwnerID]*Owner)
	for _, at := range []protocol.Speaker{speaker("n", "ann"), speaker("n", "bob"), speaker("n", "cat"), speaker("other", "eve")} {
		owners[at.Owner], streams[at.Owner] = connectOwner(t, o, at)
	}
	o.Reply(speaker("n", "bob"), &protocol.LeaseReply{Seq: 1})
	o.Redirect(speaker("n", "cat"), protocol.NotLeader{Term: 2}) // queued before Announce
	o.Announce("n", protocol.NotLeader{Term: 2, Leader: "m"})
	for name, s := range owners {
		if err := s.flush(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []leasehold.OwnerID{"ann", "cat"} {
		if sent := streams[name].sent; len(sent) != 1 || sent[0].GetNotLeader().GetTerm() != 2 || sent[0].GetNotLeader().GetLeader() != "m" {
			t.Errorf("sent to %s: %v", name, sent)
		}
	}
	if sent := streams["bob"].sent; len(sent) != 1 || sent[0].GetGrant() == nil {
		t.Errorf("sent to bob: %v, want the reply", sent)
	}
	if sent := streams["eve"].sent; len(sent) != 0 {
		t.Errorf("sent to eve, in another namespace: %v", sent)
	}
}

// A stream whose handler has returned is not registered by a request that is handled then.
func TestRegisterAfterLeave(t *testing.T) {
	o := NewOwners(t.Context(), Config{MaxStreams: 1})
	s, err := o.Open(&holdStream{})
	if err != nil {
		t.Fatal(err)
	}
	s.leave()
	s.Register(speaker("n", "ann"))
	if len(o.streams) != 0 || o.Count() != 0 {
		t.Errorf("%d owners are registered that have left", len(o.streams))
	}
}
