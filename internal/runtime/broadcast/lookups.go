package broadcast

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	defaultMaxDirect = 512
	// maxListed is the maximum number of lookups in the result of List.
	maxListed = 1024
)

// Lookups has the streams of lookups, and of standbys that follow this manager. Its methods are
// safe for concurrent use.
type Lookups struct {
	group
	slots chan struct{} // one element per bulk message that is being sent

	// The following are guarded by mu.
	lastID     uint64
	streams    map[uint64]*Lookup
	namespaces map[leasehold.Namespace]*namespace
}

// A namespace has lookups: at least one.
type namespace struct {
	lookups map[uint64]*Lookup
	answers answers
	batch   batch
}

// NewLookups returns Lookups whose streams end with the context.
func NewLookups(ctx context.Context, cfg Config) *Lookups {
	cfg.MaxDirect = cmp.Or(cfg.MaxDirect, defaultMaxDirect)
	return &Lookups{
		group: newGroup(ctx, cfg), slots: make(chan struct{}, bulkSlots()),
		streams: make(map[uint64]*Lookup), namespaces: make(map[leasehold.Namespace]*namespace),
	}
}

// Open admits a stream. The caller then calls [Lookup.Serve].
func (l *Lookups) Open(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) (*Lookup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admit("follow", "lookups", ": connect to another manager of the group"); err != nil {
		return nil, err
	}
	l.lastID++
	s := &Lookup{lookups: l, id: l.lastID, recv: stream.Recv}
	s.receiver = receiver{stream: stream, send: s.sendMessage, ready: make(chan struct{}, 1)}
	if p, ok := peer.FromContext(stream.Context()); ok {
		s.addr = p.Addr.String()
	}
	l.streams[s.id] = s
	return s, nil
}

// Broadcast sends a reply to all lookups of a namespace. The caller must not modify the reply afterwards.
func (l *Lookups) Broadcast(reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ns := l.namespaces[reply.Namespace]
	switch {
	case ns == nil || l.closed:
	case ns.batch.active:
		ns.batch.add(reply)
	case len(ns.lookups) <= l.cfg.MaxDirect:
		all := updates(reply)
		for _, s := range ns.lookups {
			s.with(func(q *queue) { q.addUpdates(all) })
		}
	default:
		ns.batch.active = true
		ns.batch.add(reply)
		l.running.Go(func() { l.sendWaves(ns) })
	}
}

// Answer sends a lookup the reply to its request. The caller must not modify the reply afterwards.
func (l *Lookups) Answer(to uint64, reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[to]
	if s == nil {
		return
	}
	var shared *update
	if ns := l.namespaces[reply.Namespace]; ns != nil {
		shared = ns.answers.share(reply)
	} else {
		shared = &update{reply: reply}
	}
	s.answered(reply.LSN)
	s.with(func(q *queue) { q.putReply(message{update: shared, answer: reply}) })
}

// Send sends a lookup a reply without a table.
func (l *Lookups) Send(to uint64, response *leaseholdv1.FollowResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.streams[to]; s != nil {
		s.with(func(q *queue) { q.putReply(message{response: response}) })
	}
}

// Namespace returns the namespace of a lookup, "" if it has left.
func (l *Lookups) Namespace(id uint64) leasehold.Namespace {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.streams[id]; s != nil {
		return s.namespace
	}
	return ""
}

// CountByNamespace returns the number of lookups of each namespace that has any.
func (l *Lookups) CountByNamespace() map[leasehold.Namespace]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[leasehold.Namespace]int, len(l.namespaces))
	for name, ns := range l.namespaces {
		out[name] = len(ns.lookups)
	}
	return out
}

// List describes the lookups of a namespace, the longest connected first.
func (l *Lookups) List(now mono.Instant, name leasehold.Namespace) *leaseholdv1.ListLookupsResponse {
	l.mu.Lock()
	var streams []*Lookup
	if ns := l.namespaces[name]; ns != nil {
		streams = slices.Collect(maps.Values(ns.lookups))
	}
	l.mu.Unlock()
	slices.SortFunc(streams, byID)
	response := &leaseholdv1.ListLookupsResponse{Total: uint32(len(streams))}
	for _, s := range streams[:min(maxListed, len(streams))] {
		response.Lookups = append(response.Lookups, s.status(now))
	}
	return response
}
