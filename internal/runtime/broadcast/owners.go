package broadcast

import (
	"context"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Owners has the streams of owners. Their key is the session with the names of namespace and owner, which
// access control has checked: a client that knows the session of another owner must not replace its stream.
// It is safe for concurrent use.
type Owners struct {
	group
	streams map[protocol.Speaker]*Owner // guarded by mu
}

// An Owner is one stream of one session of an owner.
type Owner struct {
	receiver
	owners  *Owners
	recv    func() (*leaseholdv1.HoldRequest, error)
	speaker protocol.Speaker // set by Register; guarded by the mutex of owners
}

// NewOwners returns Owners whose streams end with the context.
func NewOwners(ctx context.Context, cfg Config) *Owners {
	return &Owners{group: newGroup(ctx, cfg), streams: make(map[protocol.Speaker]*Owner)}
}

// Open admits a stream. The caller then calls [Owner.Serve].
func (o *Owners) Open(stream grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) (*Owner, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.admit("hold leases", "owners", ""); err != nil {
		return nil, err
	}
	s := &Owner{owners: o, recv: stream.Recv}
	s.receiver = receiver{stream: stream, send: s.sendMessage, ready: make(chan struct{}, 1), replaced: make(chan struct{})}
	return s, nil
}

// Serve calls handle for each request, one at a time, and sends the owner's messages, until the stream ends.
func (s *Owner) Serve(handle func(*leaseholdv1.HoldRequest) error) error {
	defer s.leave()
	return serve(&s.owners.group, &s.receiver, s.recv, handle)
}

// Register makes this stream the current one of a session, and ends the previous one: the process of the session has
// reconnected.
func (s *Owner) Register(speaker protocol.Speaker) {
	o := s.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.left {
		return // its first request was handled after the handler of the stream had returned
	}
	if before := o.streams[speaker]; before != nil {
		close(before.replaced)
	}
	s.speaker = speaker
	o.streams[speaker] = s
}

func (s *Owner) leave() {
	o := s.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count--
	s.left = true
	if o.streams[s.speaker] == s {
		delete(o.streams, s.speaker)
	}
}

func (s *Owner) sendMessage(m message) error {
	if failpoint.Drop("manager/reply-before-send") {
		return nil
	}
	return s.transmit(m)
}

// Reply sends a reply to a session, if it is connected. The caller must not modify the reply afterwards.
func (o *Owners) Reply(to protocol.Speaker, r *protocol.LeaseReply) {
	o.put(to, message{response: r})
}

// Redirect sends a session to the leader.
func (o *Owners) Redirect(to protocol.Speaker, n protocol.NotLeader) { o.put(to, redirect(n)) }

// Refuse sends a session the reason of its rejection.
func (o *Owners) Refuse(to protocol.Speaker, why error) {
	o.put(to, message{response: &leaseholdv1.HoldResponse{
		Version: wire.Version, Kind: &leaseholdv1.HoldResponse_Refusal{Refusal: wire.FromRefusal(why)},
	}})
}

// Announce sends the leader's address to all owners of a namespace, except those with a queued reply of
// another kind. It ends their backoff.
func (o *Owners) Announce(ns leasehold.Namespace, n protocol.NotLeader) {
	m := redirect(n)
	o.mu.Lock()
	defer o.mu.Unlock()
	for speaker, s := range o.streams {
		if speaker.Namespace == ns {
			s.with(func(q *queue) { q.announce(m) })
		}
	}
}

func (o *Owners) put(to protocol.Speaker, m message) {
	o.mu.Lock()
	s := o.streams[to]
	o.mu.Unlock()
	if s != nil {
		s.with(func(q *queue) { q.putReply(m) })
	}
}

func redirect(n protocol.NotLeader) message {
	return message{redirect: true, response: &leaseholdv1.HoldResponse{
		Version: wire.Version, Kind: &leaseholdv1.HoldResponse_NotLeader{NotLeader: wire.FromNotLeader(n)},
	}}
}
