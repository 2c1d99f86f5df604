package manager

import (
	"sync"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// events tells whoever watches what happens. Nobody waits for a watcher: one
// that reads too slowly misses events, and learns how many.
type events struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
}

// watcherQueue is how many events may wait for a watcher.
const watcherQueue = 4096

// maxWatchers bounds how many watch one manager.
const maxWatchers = 256

type watcher struct {
	namespace leasehold.Namespace // empty for all
	queue     chan *leaseholdv1.WatchResponse
	missed    uint64 // guarded by the events' lock
}

func newEvents() *events { return &events{watchers: make(map[*watcher]bool)} }

func (e *events) watch(ns leasehold.Namespace) (*watcher, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.watchers) >= maxWatchers {
		return nil, leasehold.Errorf("watch", leasehold.ErrLimit, "", "%d are watching already, and that is the limit", len(e.watchers))
	}
	w := &watcher{namespace: ns, queue: make(chan *leaseholdv1.WatchResponse, watcherQueue)}
	e.watchers[w] = true
	return w, nil
}

func (e *events) leave(w *watcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.watchers, w)
}

// watching returns how many watch.
func (e *events) watching() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.watchers)
}

// tell lets all watchers of a namespace know. Draw is called for each.
func (e *events) tell(ns leasehold.Namespace, draw func() *leaseholdv1.WatchResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		if w.namespace != "" && ns != "" && w.namespace != ns {
			continue
		}
		event := draw()
		event.Namespace, event.Missed = string(ns), w.missed
		select {
		case w.queue <- event:
			w.missed = 0
		default:
			w.missed++
		}
	}
}

// changed tells of changes of a lease table.
func (e *events) changed(reply *protocol.LookupReply) {
	now := timestamppb.Now()
	for _, c := range reply.Changes {
		e.tell(reply.Namespace, func() *leaseholdv1.WatchResponse {
			return &leaseholdv1.WatchResponse{
				At:    now,
				Event: &leaseholdv1.WatchResponse_Change{Change: historyEntry(store.Past{At: now.AsTime(), Change: c})},
			}
		})
	}
}

// noted tells of something else.
func (e *events) noted(ns leasehold.Namespace, owner leasehold.OwnerID, what, text string) {
	e.tell(ns, func() *leaseholdv1.WatchResponse {
		return &leaseholdv1.WatchResponse{
			At:    timestamppb.Now(),
			Event: &leaseholdv1.WatchResponse_Note{Note: &leaseholdv1.Note{What: what, Owner: string(owner), Text: text}},
		}
	})
}

// led tells who leads.
func (e *events) led(n protocol.NotLeader) {
	e.tell("", func() *leaseholdv1.WatchResponse {
		return &leaseholdv1.WatchResponse{
			At: timestamppb.Now(), Event: &leaseholdv1.WatchResponse_Leader{Leader: wire.FromNotLeader(n)},
		}
	})
}

// Watch sends what happens. A standby passes on what the leader sends.
func (s *adminService) Watch(r *leaseholdv1.WatchRequest, stream leaseholdv1.AdminService_WatchServer) error {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return wire.FromError(err)
	}
	ctx := stream.Context()
	ns := leasehold.Namespace(r.GetNamespace())
	if ns != "" {
		if err := s.exists(ctx, ns); err != nil {
			return wire.FromError(err)
		}
	}
	if done, err := forwardStream(ctx, s.m, r, leaseholdv1.AdminServiceClient.Watch, stream.Send); done {
		return err
	}
	w, err := s.m.events.watch(ns)
	if err != nil {
		return wire.FromError(err)
	}
	defer s.m.events.leave(w)
	visible, missed := s.m.visible(ctx), uint64(0)
	if err := stream.Send(s.m.leading.event()); err != nil { // so that whoever watches again knows who it is now
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.m.ctx.Done():
			return wire.FromError(leasehold.Errorf("watch", leasehold.ErrUnavailable, s.m.cfg.Advertise, "this manager is shutting down; watch another"))
		case <-s.m.leading.lost():
			return wire.FromError(leasehold.Errorf("watch", leasehold.ErrNotLeader, s.m.cfg.Advertise, "this manager no longer leads; watch again"))
		case event := <-w.queue:
			event.Missed += missed
			if missed = event.GetMissed(); event.GetNamespace() != "" && !visible(leasehold.Namespace(event.GetNamespace())) {
				continue
			}
			missed = 0
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
}
