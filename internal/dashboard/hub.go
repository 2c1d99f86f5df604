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

// A hub knows what the page shows of one namespace, and tells all who look at it. The
// hub of the namespace "" knows the group alone. Its methods may be called from many
// goroutines at once.
type hub struct {
	client    *admin.Client
	namespace string
	may       func(fullMethod string) bool // whether it may ask that
	epoch     string                       // tells its frames from those of another hub

	cancel  context.CancelFunc
	running sync.WaitGroup
	again   chan struct{} // has an element if the table must be read again

	mu      sync.Mutex
	state   state
	adrift  *drift   // changes of the table do not come; nil if they do
	seq     uint64   // of the newest frame
	recent  []*frame // the newest last; all that came after a snapshot at seq - len
	viewers map[*viewer]bool
	// snapshot is the state at seq, for those who come; nil if it must be made.
	snapshot *frame
	// left is when the last viewer went, while there is none.
	left time.Time
}

// state is what a new viewer is shown.
type state struct {
	table  *mirror // nil until it was read
	absent bool    // there is no such namespace
	live   live    // all sections that are known, but for Owners
	owners map[string]ownerRow
	events []admin.Event // the newest last
}

const (
	// mostEvents is how many events a hub keeps for later viewers.
	mostEvents = 500
	// mostRecent is how many frames are remembered for those who reconnect, and how
	// many may wait for a viewer: some ten seconds of them.
	mostRecent = 64
	// mostNews is how many changes of the table may go into a frame. A snapshot takes
	// little more.
	mostNews = 1024
)

// newHub returns a hub that asks on behalf of somebody.
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

// close ends the hub, and the streams of its viewers.
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
	wake   chan struct{} // has an element if there is something to take
	gone   chan struct{} // closed when the hub ends
	of     string        // whose it is; it never changes
	queue  []*frame
	resync bool // it is to get a snapshot, and nothing of the queue
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

// join adds a viewer. If it has seen frames of this hub, up to last, it gets those
// after it, as long as they are remembered; else a snapshot.
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

// deserted reports whether nobody has looked for so long.
func (h *hub) deserted(since time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.viewers) == 0 && time.Since(h.left) >= since
}

// take returns what a viewer is to be sent next.
func (h *hub) take(v *viewer) []*frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.resync {
		if !h.known() {
			return nil // the first thing that is known wakes it
		}
		v.resync, v.queue = false, nil
		return []*frame{h.current()}
	}
	out := v.queue
	v.queue = nil
	return out
}

// known reports whether there is anything to show.
func (h *hub) known() bool {
	return h.state.live.At != 0 && (h.namespace == "" || h.state.table != nil || h.state.absent || h.state.live.Stale != nil)
}

// current returns the snapshot frame. What it says is copied now, and encoded by
// whoever sends it first.
func (h *hub) current() *frame {
	if h.snapshot == nil {
		body := snapshot{Namespace: h.namespace, live: h.state.live, Events: append([]admin.Event{}, h.state.events...)}
		body.Owners = changedOwners(nil, maps.Clone(h.state.owners))
		var table *mirror
		if h.state.table != nil {
			table = h.state.table.clone()
		}
		h.snapshot = &frame{id: h.id(), event: "snapshot", body: func() any { return body.with(table) }}
	}
	return h.snapshot
}

func (h *hub) id() string { return h.epoch + "-" + strconv.FormatUint(h.seq, 10) }

// A snapshot is everything.
type snapshot struct {
	Namespace string `json:"namespace"`
	live
	LSN    leasehold.LSN `json:"lsn"`
	Begun  leasehold.LSN `json:"begun"` // losses up to it are not known
	Names  []string      `json:"names"` // of owners, as the table refers to them
	Table  *columns      `json:"table"` // null if it is not known
	Events []admin.Event `json:"events"`
}

func (s snapshot) with(table *mirror) snapshot {
	if table != nil {
		s.LSN, s.Begun, s.Names, s.Table = table.lsn, table.begun, table.names, table.columns()
	}
	return s
}

// publish sends a frame to all viewers. A viewer for whom too many wait gets a
// snapshot instead. The lock is held.
func (h *hub) publish(event string, body any) {
	h.seq++
	h.snapshot = nil
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

// renew has everybody get a snapshot. The lock is held.
func (h *hub) renew() {
	h.seq++
	h.snapshot, h.recent = nil, nil
	for v := range h.viewers {
		v.resync, v.queue = true, nil
		v.poke()
	}
}

// remember keeps events for those who come later. The lock is held.
func (h *hub) remember(events []admin.Event) {
	h.state.events = append(h.state.events, events...)
	h.state.events = slices.Clone(h.state.events[max(0, len(h.state.events)-mostEvents):])
}
