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

// events publishes events to watchers. Publishing does not wait: a watcher that reads too slowly
// misses events, and the next event that it receives contains their number.
type events struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
}

// watcherQueue is the length of one watcher's queue.
const watcherQueue = 4096

// maxWatchers bounds the watchers of one manager.
const maxWatchers = 256

type watcher struct {
	namespace leasehold.Namespace // empty for all
	queue     chan *leaseholdv1.WatchResponse
	missed    uint64 // guarded by the events' lock
}

func newEvents() *events { return &events{watchers: make(map[*watcher]bool)} }

func (e *events) subscribe(ns leasehold.Namespace) (*watcher, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.watchers) >= maxWatchers {
		return nil, leasehold.Errorf("watch", leasehold.ErrLimit, "", "this manager has %d watchers, the maximum", len(e.watchers))
	}
	w := &watcher{namespace: ns, queue: make(chan *leaseholdv1.WatchResponse, watcherQueue)}
	e.watchers[w] = true
	return w, nil
}

func (e *events) unsubscribe(w *watcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.watchers, w)
}

// count returns the number of watchers.
func (e *events) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.watchers)
}

// publish sends an event to all watchers of a namespace, each time a new one from create.
func (e *events) publish(ns leasehold.Namespace, create func() *leaseholdv1.WatchResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		if w.namespace != "" && ns != "" && w.namespace != ns {
			continue
		}
		event := create()
		event.Namespace, event.Missed = string(ns), w.missed
		select {
		case w.queue <- event:
			w.missed = 0
		default:
			w.missed++
		}
	}
}

// publishChanges publishes changes of a lease table.
func (e *events) publishChanges(reply *protocol.LookupReply) {
	now := timestamppb.Now()
	for _, c := range reply.Changes {
		e.publish(reply.Namespace, func() *leaseholdv1.WatchResponse {
			return &leaseholdv1.WatchResponse{
				At:    now,
				Event: &leaseholdv1.WatchResponse_Change{Change: historyEntry(store.Past{At: now.AsTime(), Change: c})},
			}
		})
	}
}

// publishNote publishes a note of a namespace's machine, or an operator's order.
func (e *events) publishNote(ns leasehold.Namespace, owner leasehold.OwnerID, what, text string) {
	e.publish(ns, func() *leaseholdv1.WatchResponse {
		return &leaseholdv1.WatchResponse{
			At:    timestamppb.Now(),
			Event: &leaseholdv1.WatchResponse_Note{Note: &leaseholdv1.Note{What: what, Owner: string(owner), Text: text}},
		}
	})
}

// publishLeader publishes a change of leader.
func (e *events) publishLeader(n protocol.NotLeader) {
	e.publish("", func() *leaseholdv1.WatchResponse {
		return &leaseholdv1.WatchResponse{
			At: timestamppb.Now(), Event: &leaseholdv1.WatchResponse_Leader{Leader: wire.FromNotLeader(n)},
		}
	})
}

// Watch sends events until the call or the leadership ends. The first one is the current leader.
// A standby forwards the leader's events.
func (s *adminService) Watch(r *leaseholdv1.WatchRequest, stream leaseholdv1.AdminService_WatchServer) error {
	if err := wire.CheckClient(r.GetVersion()); err != nil {
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
	w, err := s.m.events.subscribe(ns)
	if err != nil {
		return wire.FromError(err)
	}
	defer s.m.events.unsubscribe(w)
	visible, missed := s.m.visible(ctx), uint64(0)
	if err := stream.Send(s.m.leadership.event()); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.m.ctx.Done():
			return wire.FromError(leasehold.Errorf("watch", leasehold.ErrUnavailable, s.m.cfg.Advertise, "this manager is shutting down; watch another"))
		case <-s.m.leadership.lost():
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
