package manager

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// lookups knows the streams of lookups, and of standbys that follow us.
type lookups struct {
	most int

	mu      sync.Mutex
	closed  bool
	newest  uint64
	streams map[uint64]*lookupStream
	spaces  map[leasehold.Namespace]map[uint64]*lookupStream

	answers map[leasehold.Namespace]*answers
}

func newLookups(most int) *lookups {
	return &lookups{
		most: most, streams: make(map[uint64]*lookupStream),
		spaces:  make(map[leasehold.Namespace]map[uint64]*lookupStream),
		answers: make(map[leasehold.Namespace]*answers),
	}
}

// lookupQueue is how many messages may wait for a lookup that reads slowly.
// Beyond that they are dropped: it finds that some are missing, and asks.
const lookupQueue = 32

// A lookupStream is one conversation with one lookup.
type lookupStream struct {
	id      uint64
	addr    string // where it is connected from
	mailbox chan outgoing

	// What follows is guarded by the lookups' lock.
	namespace leasehold.Namespace // once it is known
	since     mono.Instant        // when it said so
	heard     mono.Instant        // when it last asked
	lsn       leasehold.LSN       // the last change that it had then
	behind    uint64              // how many it lacked
}

// outgoing is a message to a lookup: one of its own, or an encoded update that
// others get too, marked as an answer to it.
type outgoing struct {
	message *leaseholdv1.FollowResponse
	update  *encoded
	answer  *protocol.LookupReply // nil if the update was not asked for
}

// An encoded update is encoded by whoever sends it first, and by nobody twice.
type encoded struct {
	reply *protocol.LookupReply
	once  sync.Once
	frame *wire.Frame
	err   error
}

func (e *encoded) bytes() (*wire.Frame, error) {
	e.once.Do(func() { e.frame, e.err = wire.EncodeUpdate(e.reply) })
	return e.frame, e.err
}

// admit numbers a stream from an address, unless there are too many.
func (l *lookups) admit(addr string) (*lookupStream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, &leasehold.Error{Op: "follow", Kind: leasehold.Closed}
	}
	if len(l.streams) >= l.most {
		return nil, leasehold.Errorf("follow", leasehold.Limit, "", "this manager has %d lookups connected, and that is its limit: connect to another manager of the group", len(l.streams))
	}
	l.newest++
	s := &lookupStream{id: l.newest, addr: addr, mailbox: make(chan outgoing, lookupQueue)}
	l.streams[s.id] = s
	return s, nil
}

// subscribe makes a stream hear of a namespace.
func (l *lookups) subscribe(now mono.Instant, s *lookupStream, ns leasehold.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.namespace, s.since = ns, now
	if l.spaces[ns] == nil {
		l.spaces[ns] = make(map[uint64]*lookupStream)
	}
	l.spaces[ns][s.id] = s
}

// asked remembers what a lookup had when it last asked.
func (l *lookups) asked(now mono.Instant, s *lookupStream, lsn leasehold.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.heard, s.lsn = now, lsn
}

func (l *lookups) leave(s *lookupStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s.id)
	if in := l.spaces[s.namespace]; in != nil {
		delete(in, s.id)
		if len(in) == 0 {
			delete(l.spaces, s.namespace)
			delete(l.answers, s.namespace)
		}
	}
}

// put leaves a message for a lookup. If it reads too slowly, everything that
// waits is dropped: what comes next tells it that something is missing.
func (s *lookupStream) put(out outgoing) {
	select {
	case s.mailbox <- out:
		return
	default:
	}
	for range lookupQueue {
		select {
		case <-s.mailbox:
		default:
		}
	}
	select {
	case s.mailbox <- out:
	default: // the lock is held: nobody else puts anything in
	}
}

// send sends a message to one lookup.
func (l *lookups) send(to uint64, message *leaseholdv1.FollowResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.streams[to]; s != nil {
		s.put(outgoing{message: message})
	}
}

// answer sends a reply to the lookup that asked for it.
func (l *lookups) answer(to uint64, reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[to]
	if s == nil {
		return
	}
	s.behind = 0
	if reply.LSN > s.lsn {
		s.behind = uint64(reply.LSN - s.lsn)
	}
	of := l.answers[reply.Namespace]
	if of == nil {
		of = &answers{}
		l.answers[reply.Namespace] = of
	}
	s.put(outgoing{update: of.share(reply), answer: reply})
}

// broadcast sends news to all lookups of a namespace.
func (l *lookups) broadcast(reply *protocol.LookupReply) {
	news := &encoded{reply: reply}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spaces[reply.Namespace] {
		s.put(outgoing{update: news})
	}
}

// follows returns the namespace of a lookup, "" if it has gone.
func (l *lookups) follows(id uint64) leasehold.Namespace {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.streams[id]; s != nil {
		return s.namespace
	}
	return ""
}

// connected returns how many lookups of a namespace there are.
func (l *lookups) connected(ns leasehold.Namespace) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.spaces[ns])
}

// streaming returns how many streams there are.
func (l *lookups) streaming() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// perNamespace returns how many follow each namespace.
func (l *lookups) perNamespace() map[leasehold.Namespace]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[leasehold.Namespace]int, len(l.spaces))
	for ns, in := range l.spaces {
		out[ns] = len(in)
	}
	return out
}

// close admits nobody any more. Those who are there end with the manager.
func (l *lookups) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// lookupService is the wire's end of it.
type lookupService struct {
	leaseholdv1.UnimplementedLookupServiceServer
	m *Manager
}

// Follow is a conversation with a lookup.
func (s *lookupService) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	from := ""
	if p, ok := peer.FromContext(stream.Context()); ok {
		from = p.Addr.String()
	}
	out, err := s.m.lookups.admit(from)
	if err != nil {
		s.m.metrics.refuse(leasehold.KindOf(err))
		return wire.FromError(err)
	}
	defer s.m.lookups.leave(out)
	hearing := lookupHearing{m: s.m, stream: out}
	return converse(s.m, conversation[leaseholdv1.FollowRequest, outgoing]{
		ctx: stream.Context(), recv: stream.Recv, hear: hearing.hear, mailbox: out.mailbox,
		send: func(o outgoing) error { return sendOutgoing(stream, o) },
	})
}

func sendOutgoing(stream grpc.ServerStream, o outgoing) error {
	if failpoint.Drop("manager/update-before-send") {
		return nil
	}
	if o.message != nil {
		return stream.SendMsg(o.message)
	}
	frame, err := o.update.bytes()
	if err != nil {
		return wire.FromError(err)
	}
	if o.answer != nil {
		frame = frame.Answer(o.answer.Echo, o.answer.Age)
	}
	return stream.SendMsg(frame)
}

// lookupHearing is the listening half of a conversation with a lookup.
type lookupHearing struct {
	m         *Manager
	stream    *lookupStream
	namespace leasehold.Namespace // of the first message, and all others
}

func (h *lookupHearing) hear(r *leaseholdv1.FollowRequest) error {
	first := h.namespace == ""
	if first {
		if err := wire.CheckVersion(r.GetVersion()); err != nil {
			return err
		}
	}
	request, err := wire.ToLookupRequest(r, h.stream.id)
	if err != nil {
		return err
	}
	if first {
		h.namespace = request.Namespace
		h.m.lookups.subscribe(h.m.clock.Now(), h.stream, h.namespace)
	}
	if request.Namespace != h.namespace {
		return leasehold.Errorf("follow", leasehold.Invalid, string(request.Namespace), "a stream is for one namespace, this one is for %q", h.namespace)
	}
	if failpoint.Drop("manager/question-heard") {
		return nil
	}
	h.m.lookups.asked(h.m.clock.Now(), h.stream, request.LSN)
	h.m.driver.Post(h.m.ctx, node.Lookup{LookupRequest: request})
	return nil
}
