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
	few  int // are told by their own goroutines

	mu      sync.Mutex
	closed  bool
	newest  uint64
	streams map[uint64]*lookupStream
	spaces  map[leasehold.Namespace]map[uint64]*lookupStream

	answers map[leasehold.Namespace]*answers
	fanouts map[leasehold.Namespace]*fanout

	bulk    chan struct{} // has one for everything large that is being sent
	done    chan struct{} // closed with it
	running sync.WaitGroup
}

func newLookups(most int) *lookups {
	return &lookups{
		most: most, few: fewLookups, streams: make(map[uint64]*lookupStream),
		spaces:  make(map[leasehold.Namespace]map[uint64]*lookupStream),
		answers: make(map[leasehold.Namespace]*answers),
		fanouts: make(map[leasehold.Namespace]*fanout),
		bulk:    make(chan struct{}, bulkAtOnce()), done: make(chan struct{}),
	}
}

// A lookupStream is one conversation with one lookup.
type lookupStream struct {
	id   uint64
	addr string // where it is connected from
	wire grpc.ServerStream
	mail *mail

	// What follows is guarded by the lookups' lock.
	left      bool
	namespace leasehold.Namespace // once it is known
	since     mono.Instant        // when it said so

	questions questions
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
func (l *lookups) admit(addr string, stream grpc.ServerStream) (*lookupStream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, &leasehold.Error{Op: "follow", Kind: leasehold.ErrClosed}
	}
	if len(l.streams) >= l.most {
		return nil, leasehold.Errorf("follow", leasehold.ErrLimit, "", "this manager has %d lookups connected, and that is its limit: connect to another manager of the group", len(l.streams))
	}
	l.newest++
	s := &lookupStream{id: l.newest, addr: addr, wire: stream, mail: newMail()}
	l.streams[s.id] = s
	return s, nil
}

// subscribe makes a stream hear of a namespace.
func (l *lookups) subscribe(now mono.Instant, s *lookupStream, ns leasehold.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.left {
		return // its first message was heard when its handler had returned
	}
	s.namespace, s.since = ns, now
	if l.spaces[ns] == nil {
		l.spaces[ns], l.fanouts[ns] = make(map[uint64]*lookupStream), &fanout{}
	}
	l.spaces[ns][s.id] = s
}

func (l *lookups) leave(s *lookupStream) {
	s.mail.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.left = true
	delete(l.streams, s.id)
	if in := l.spaces[s.namespace]; in != nil {
		delete(in, s.id)
		if len(in) == 0 {
			delete(l.spaces, s.namespace)
			delete(l.answers, s.namespace)
			delete(l.fanouts, s.namespace)
		}
	}
}

// send sends a message to one lookup.
func (l *lookups) send(to uint64, message *leaseholdv1.FollowResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.streams[to]; s != nil {
		s.mail.reply(outgoing{message: message})
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
	s.questions.answered(reply.LSN)
	of := l.answers[reply.Namespace]
	if of == nil {
		of = &answers{}
		l.answers[reply.Namespace] = of
	}
	s.mail.reply(outgoing{update: of.share(reply), answer: reply})
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

// close admits nobody any more, and waits for those who tell news. Those who are there end
// with the manager.
func (l *lookups) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	l.mu.Unlock()
	l.running.Wait()
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
	out, err := s.m.lookups.admit(from, stream)
	if err != nil {
		s.m.metrics.refuse(leasehold.KindOf(err))
		return wire.FromError(err)
	}
	defer s.m.lookups.leave(out)
	hearing := lookupHearing{m: s.m, stream: out}
	return converse(s.m, conversation[leaseholdv1.FollowRequest]{
		ctx: stream.Context(), recv: stream.Recv, hear: hearing.hear, ready: out.mail.ready,
		speak: func() error { return s.m.lookups.sendAll(stream, out.mail) },
	})
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
		return leasehold.Errorf("follow", leasehold.ErrInvalid, string(request.Namespace), "a stream is for one namespace, this one is for %q", h.namespace)
	}
	if failpoint.Drop("manager/question-heard") {
		return nil
	}
	if h.stream.questions.ask(h.m.clock.Now(), request) {
		return h.decide(h.stream.questions.next)
	}
	return nil
}

// decide hands a question to the machine. If it need not wait for its turn, we send the answer,
// instead of whoever would have to be woken for that.
func (h *lookupHearing) decide(next func() node.Event) error {
	attends, decided := h.stream.mail.attend(), h.m.driver.TryPatient(next)
	switch {
	case decided && attends:
		return h.m.lookups.sendAnswer(h.stream)
	case attends:
		h.stream.mail.release(nil, false)
	}
	if !decided {
		h.m.driver.PostPatient(h.m.ctx, next)
	}
	return nil
}
