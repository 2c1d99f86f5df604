package manager

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// owners knows on which stream each session can be reached. It is found by the names of
// its namespace and its owner as well, which the policy has seen to: who has learnt
// another's session must not take the place of its stream.
type owners struct {
	most int

	mu      sync.Mutex
	closed  bool
	count   int // streams, known by a session or not
	streams map[protocol.Speaker]*ownerStream
}

func newOwners(most int) *owners {
	return &owners{most: most, streams: make(map[protocol.Speaker]*ownerStream)}
}

// connected returns how many streams of owners there are.
func (o *owners) connected() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// An ownerStream is one conversation with one session.
type ownerStream struct {
	speaker  protocol.Speaker // once it is known; guarded by the owners' lock
	left     bool             // guarded by the owners' lock
	replaced chan struct{}    // closed when another stream takes its place
	outbox   *outbox
	wire     grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
}

// send sends a message. Whoever attends to the outbox may call it.
func (s *ownerStream) send(message holdMessage) error {
	if failpoint.Drop("manager/reply-before-send") {
		return nil
	}
	return s.wire.Send(message.response())
}

// A holdMessage becomes what is sent on the goroutine that sends it: a
// thousand owners that are told something at once must not keep the machine
// from its work.
type holdMessage interface {
	response() *leaseholdv1.HoldResponse
}

type (
	leaseReply struct{ *protocol.LeaseReply }
	notLeader  struct{ protocol.NotLeader }
	refusal    struct{ why error }
)

func (r leaseReply) response() *leaseholdv1.HoldResponse { return wire.FromLeaseReply(r.LeaseReply) }

func (n notLeader) response() *leaseholdv1.HoldResponse {
	return &leaseholdv1.HoldResponse{
		Version: wire.Version, Kind: &leaseholdv1.HoldResponse_NotLeader{NotLeader: wire.FromNotLeader(n.NotLeader)},
	}
}

func (r refusal) response() *leaseholdv1.HoldResponse {
	return &leaseholdv1.HoldResponse{
		Version: wire.Version, Kind: &leaseholdv1.HoldResponse_Refusal{Refusal: wire.FromRefusal(r.why)},
	}
}

// admit counts a stream, unless there are too many.
func (o *owners) admit() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return &leasehold.Error{Op: "hold leases", Kind: leasehold.ErrClosed}
	}
	if o.count >= o.most {
		return leasehold.Errorf("hold leases", leasehold.ErrLimit, "", "this manager has %d owners connected, and that is its limit", o.count)
	}
	o.count++
	return nil
}

// register makes a stream the one on which a session is reached. The one
// before it ends: a session is one process, and that has moved on.
func (o *owners) register(speaker protocol.Speaker, s *ownerStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.left {
		return // its first message was heard when its handler had returned
	}
	if before := o.streams[speaker]; before != nil {
		close(before.replaced)
	}
	s.speaker = speaker
	o.streams[speaker] = s
}

func (o *owners) leave(s *ownerStream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count--
	s.left = true
	if o.streams[s.speaker] == s {
		delete(o.streams, s.speaker)
	}
}

// send leaves a message for a session, if it is connected.
func (o *owners) send(to protocol.Speaker, message holdMessage) {
	o.mu.Lock()
	s := o.streams[to]
	o.mu.Unlock()
	if s != nil {
		s.outbox.put(message)
	}
}

// announce tells all owners of a namespace that are connected who leads, unless there is
// something else to say to them. They ask again and again while nobody answers, and this
// spares them the rest of their patience.
func (o *owners) announce(ns leasehold.Namespace, n notLeader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for speaker, s := range o.streams {
		if speaker.Namespace == ns {
			s.outbox.announce(n)
		}
	}
}

// close admits nobody any more. Those who are there end with the manager.
func (o *owners) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// ownerService is the wire's end of it.
type ownerService struct {
	leaseholdv1.UnimplementedOwnerServiceServer
	m *Manager
}

// Hold is a conversation with an owner.
func (s *ownerService) Hold(stream grpc.BidiStreamingServer[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]) error {
	owners := s.m.owners
	if err := owners.admit(); err != nil {
		s.m.metrics.refuse(leasehold.KindOf(err))
		return wire.FromError(err)
	}
	out := &ownerStream{outbox: newOutbox(), wire: stream, replaced: make(chan struct{})}
	hearing := ownerHearing{m: s.m, ctx: stream.Context(), stream: out}
	defer func() { owners.leave(out) }()
	return converse(s.m, conversation[leaseholdv1.HoldRequest]{
		ctx: stream.Context(), recv: stream.Recv, hear: hearing.hear, ready: out.outbox.ready, stop: out.replaced,
		speak: func() error {
			if !out.outbox.attend() {
				return nil // the listener sends it
			}
			return out.outbox.sendAll(out.send)
		},
	})
}

// ownerHearing is the listening half of a conversation with an owner.
type ownerHearing struct {
	m        *Manager
	ctx      context.Context //nolint:containedctx // it is the stream's
	stream   *ownerStream
	speaker  protocol.Speaker // of the first message, and all others
	identity string           // as whom it has shown itself, the same for all
}

func (h *ownerHearing) hear(r *leaseholdv1.HoldRequest) error {
	first := h.speaker.Session.IsZero()
	if first {
		if err := wire.CheckVersion(r.GetVersion()); err != nil {
			return err
		}
	}
	request, err := wire.ToLeaseRequest(r, protocol.DefaultLimits)
	if err != nil {
		return err
	}
	if first {
		h.speaker = request.Speaker()
		h.identity = string(h.m.shownAs(h.ctx, request.Namespace, request.Holder.Owner))
		failpoint.Here("manager/owner-connected")
		h.m.owners.register(h.speaker, h.stream)
	}
	if request.Speaker() != h.speaker {
		return leasehold.Errorf("hold leases", leasehold.ErrInvalid, string(request.Holder.Owner), "a stream is for one session of one owner")
	}
	request.Identity = h.identity
	if failpoint.Drop("manager/request-heard") {
		return nil
	}
	return h.decide(node.Request{LeaseRequest: request})
}

// decide hands an event to the machine. If it need not wait for its turn, we send the answer,
// instead of whoever would have to be woken for that.
func (h *ownerHearing) decide(event node.Event) error {
	out := h.stream.outbox
	attends, decided := out.attend(), h.m.driver.Try(event)
	switch {
	case decided && attends:
		return out.sendAll(h.stream.send)
	case attends:
		out.leave()
	}
	if !decided {
		h.m.driver.Post(h.m.ctx, event)
	}
	return nil
}
