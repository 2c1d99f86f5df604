package dashboard

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
)

// A hub holds the displayed state of one namespace, and broadcasts it to all viewers. The hub of the
// namespace "" has only the group. It is safe for concurrent use.
type hub struct {
	client    *admin.Client
	namespace string
	may       func(fullMethod string) bool // whether its caller has a permission
	epoch     string                       // part of the ids of its frames

	cancel  context.CancelFunc
	running sync.WaitGroup
	again   chan struct{} // signals that the table must be read again

	mu      sync.Mutex
	state   state
	adrift  *drift   // nil while the table is followed
	seq     uint64   // of the newest frame
	recent  []*frame // newest last: all frames after a snapshot at seq - len
	viewers map[*viewer]bool
	current *frame    // the snapshot at seq; nil if it is not built yet
	left    time.Time // when the last viewer left; zero while there is one
}

// state is what a new viewer is shown.
type state struct {
	table  *mirror // nil until it was read
	absent bool    // the namespace does not exist
	live   live    // all known sections except Owners
	owners map[string]ownerRow
	events []admin.Event // newest last
}

const (
	// mostEvents bounds the events kept for later viewers.
	mostEvents = 500
	// mostRecent bounds the frames kept for viewers that reconnect, and the queue of a viewer: about
	// ten seconds of frames.
	mostRecent = 64
	// mostNews bounds the events in a frame.
	mostNews = 1024
)

func newHub(client *admin.Client, caller access.Caller, namespace string, may func(fullMethod string) bool) *hub {
	h := &hub{
		client: client, namespace: namespace, may: may, epoch: rand.Text()[:12], again: make(chan struct{}, 1),
		viewers: make(map[*viewer]bool), left: time.Now(),
	}
	ctx, cancel := context.WithCancel(access.WithCaller(context.Background(), caller))
	h.cancel = cancel
	if namespace != "" {
		h.running.Go(func() { h.watch(ctx) })
	}
	h.running.Go(func() { h.poll(ctx) })
	return h
}

func (h *hub) close() {
	h.cancel()
	h.running.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		v.end()
	}
}

// A viewer is one stream of frames. Its fields are guarded by the hub's lock.
type viewer struct {
	wake   chan struct{} // signals queued frames
	gone   chan struct{} // closed when the hub ends
	of     string        // key of the visitor; immutable
	queue  []*frame
	resync bool // the next frame is a snapshot, and the queue is dropped
}

func (v *viewer) poke() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

func (v *viewer) end() {
	select {
	case <-v.gone:
	default:
		close(v.gone)
	}
}

// join adds a viewer. It receives the frames after last if they are buffered; otherwise a snapshot.
func (h *hub) join(last string) *viewer {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := &viewer{wake: make(chan struct{}, 1), gone: make(chan struct{}), resync: true}
	epoch, number, _ := strings.Cut(last, "-")
	seen, err := strconv.ParseUint(number, 10, 64)
	if err == nil && epoch == h.epoch && seen <= h.seq && h.seq-seen <= uint64(len(h.recent)) {
		v.resync = false
		v.queue = append(v.queue, h.recent[len(h.recent)-int(h.seq-seen):]...)
	}
	h.viewers[v] = true
	h.left = time.Time{}
	v.poke()
	return v
}

func (h *hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, v)
	if len(h.viewers) == 0 {
		h.left = time.Now()
	}
}

func (h *hub) deserted(since time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.viewers) == 0 && time.Since(h.left) >= since
}

func (h *hub) take(v *viewer) []*frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.resync {
		if !h.known() {
			return nil // the first poll wakes it
		}
		v.resync, v.queue = false, nil
		return []*frame{h.snapshot()}
	}
	out := v.queue
	v.queue = nil
	return out
}

func (h *hub) known() bool {
	return h.state.live.At != 0 && (h.namespace == "" || h.state.table != nil || h.state.absent || h.state.live.Stale != nil)
}

// snapshot returns the frame of the current state. The state is copied now, and encoded by the first
// viewer that sends it.
func (h *hub) snapshot() *frame {
	if h.current == nil {
		body := snapshotBody{Namespace: h.namespace, live: h.state.live, Events: append([]admin.Event{}, h.state.events...)}
		body.Owners = changedOwners(nil, maps.Clone(h.state.owners))
		var table *mirror
		if h.state.table != nil {
			table = h.state.table.clone()
		}
		h.current = &frame{id: h.id(), event: "snapshot", body: func() any { return body.with(table) }}
	}
	return h.current
}

func (h *hub) id() string { return h.epoch + "-" + strconv.FormatUint(h.seq, 10) }

// A snapshotBody is the whole state.
type snapshotBody struct {
	Namespace string `json:"namespace"`
	live
	LSN    leasehold.LSN `json:"lsn,string"`
	Begun  leasehold.LSN `json:"begun,string"` // losses up to it are unknown
	Names  []string      `json:"names"`        // of owners, by their index in the table
	Table  *columns      `json:"table"`        // null if unknown
	Events []admin.Event `json:"events"`
}

func (s snapshotBody) with(table *mirror) snapshotBody {
	if table != nil {
		s.LSN, s.Begun, s.Names, s.Table = table.lsn, table.begun, table.names, table.columns()
	}
	return s
}

// publish broadcasts a frame. A viewer whose queue is full receives a snapshot instead. The lock is
// held.
func (h *hub) publish(event string, body any) {
	h.seq++
	h.current = nil
	f := &frame{id: h.id(), event: event, body: func() any { return body }}
	h.recent = append(h.recent, f)
	if len(h.recent) > mostRecent {
		h.recent = slices.Clone(h.recent[len(h.recent)-mostRecent:])
	}
	for v := range h.viewers {
		if len(v.queue) >= mostRecent {
			v.resync, v.queue = true, nil
		}
		if !v.resync {
			v.queue = append(v.queue, f)
		}
		v.poke()
	}
}

// renew broadcasts a snapshot. The lock is held.
func (h *hub) renew() {
	h.seq++
	h.current, h.recent = nil, nil
	for v := range h.viewers {
		v.resync, v.queue = true, nil
		v.poke()
	}
}

// remember stores events for later viewers. The lock is held.
func (h *hub) remember(events []admin.Event) {
	h.state.events = append(h.state.events, events...)
	h.state.events = slices.Clone(h.state.events[max(0, len(h.state.events)-mostEvents):])
}

// linger is how long a hub runs without viewers, so that a reloaded page finds it.
const linger = 10 * time.Second

// hubs are the hubs of all namespaces with viewers. With an access policy each visitor has separate
// hubs, which call the manager as that visitor.
type hubs struct {
	client   *admin.Client
	most     int                                                // maximum number of viewers
	mostEach int                                                // maximum per visitor
	may      func(caller access.Caller, fullMethod string) bool // whether a caller has a permission
	pack     *packer

	mu      sync.Mutex
	closed  bool
	viewers map[string]int // by the key of the visitor
	open    map[hubKey]*hub
	sweep   *time.Timer // nil while no hub is open
	ending  sync.WaitGroup
}

type hubKey struct{ visitor, namespace string }

func newHubs(client *admin.Client, most int) *hubs {
	return &hubs{
		client: client, most: most, mostEach: most, may: func(access.Caller, string) bool { return true },
		pack: &packer{}, viewers: make(map[string]int), open: make(map[hubKey]*hub),
	}
}

// join adds a viewer to the hub of a namespace, and starts the hub if necessary. The viewer must leave.
func (s *hubs) join(who *visitor, namespace, last string) (*hub, *viewer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for _, n := range s.viewers {
		all += n
	}
	switch {
	case s.closed:
		return nil, nil, leasehold.Errorf("look", leasehold.ErrClosed, "", "this manager is shutting down; look at another")
	case all >= s.most:
		return nil, nil, leasehold.Errorf("look", leasehold.ErrLimit, "", "%d look at this manager already, and that is the limit: look at another", all)
	case s.viewers[who.key] >= s.mostEach:
		return nil, nil, leasehold.Errorf("look", leasehold.ErrLimit, "", "you look at this manager in %d windows already, and that is the limit: close some", s.mostEach)
	}
	key := hubKey{who.key, namespace}
	h := s.open[key]
	if h == nil && len(s.open) >= 2*s.most {
		return nil, nil, leasehold.Errorf("look", leasehold.ErrLimit, namespace, "%d namespaces were looked at just now, and that is the limit: try again in %v", len(s.open), linger)
	}
	if h == nil {
		h = newHub(s.client, who.caller, namespace, func(fullMethod string) bool { return s.may(who.caller, fullMethod) })
		s.open[key] = h
		if s.sweep == nil {
			s.sweep = time.AfterFunc(linger, s.tidy)
		}
	}
	s.viewers[who.key]++
	v := h.join(last)
	v.of = who.key
	return h, v, nil
}

func (s *hubs) leave(h *hub, v *viewer) {
	h.leave(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers[v.of]--; s.viewers[v.of] == 0 {
		delete(s.viewers, v.of)
	}
}

// tidy stops the hubs that have had no viewers for some time.
func (s *hubs) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for key, h := range s.open {
		if h.deserted(linger) {
			delete(s.open, key)
			s.ending.Go(h.close)
		}
	}
	s.sweep = nil
	if len(s.open) > 0 {
		s.sweep = time.AfterFunc(linger/2, s.tidy)
	}
}

func (s *hubs) close() {
	s.mu.Lock()
	s.closed = true
	if s.sweep != nil {
		s.sweep.Stop()
	}
	for key, h := range s.open {
		delete(s.open, key)
		s.ending.Go(h.close)
	}
	s.mu.Unlock()
	s.ending.Wait()
}
