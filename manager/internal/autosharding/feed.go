package autosharding

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
)

const (
	// linger is how long a feed without clients follows the table, so that a client that reconnects
	// does not cost a copy of the table.
	linger = 30 * time.Second
	// pausePerEncoding bounds the share of a processor that encodes the assignments of a namespace.
	pausePerEncoding = 9
	maxPause         = 2 * time.Second
	// feedQueue bounds the messages that wait for the feed's machine. If one is dropped, the machine
	// requests the changes.
	feedQueue = 64
)

// A feed follows the table of a namespace for its clients.
type feed struct {
	service *Service
	ns      leasehold.Namespace
	driver  *driver.Driver[lookup.Event, lookup.Action]
	ctx     context.Context //nolint:containedctx // of its goroutines
	cancel  context.CancelFunc
	changed chan struct{} // has an element if table is not encoded

	// removed, clients and idle are guarded by the service's lock.
	id      uint64
	removed bool
	clients int
	idle    *time.Timer // since the last client has left

	mu         sync.Mutex
	table      *table.Table  // the newest; nil if there is none yet
	newest     *assignment   // the newest encoded; nil if there is none yet
	superseded []*assignment // before it, that are still being sent
	updated    chan struct{} // closed when newest or table becomes available
	era        *era
}

// An era is a time at whose end all streams end.
type era struct {
	over chan struct{} // closed at the end
	why  error         // set before that
}

func newFeed(s *Service, ns leasehold.Namespace, id uint64) (*feed, error) {
	f := &feed{
		service: s, ns: ns, changed: make(chan struct{}, 1), updated: make(chan struct{}), era: &era{over: make(chan struct{})},
	}
	machine, err := lookup.New(s.cfg.Clock.Now(), lookup.Config{Namespace: ns, ID: id, Rand: s.cfg.Rand(), Beats: s.cfg.Clock.Beats()})
	if err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(s.ctx)
	f.driver = driver.New[lookup.Event, lookup.Action](s.cfg.Clock, machine, feedQueue, f.act)
	s.running.Go(func() { f.driver.Run(f.ctx) })
	s.running.Go(f.publish)
	return f, nil
}

// act executes the machine's actions. Its requests go to the manager's machine, which chooses who
// replies.
func (f *feed) act(_ mono.Instant, actions []lookup.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			f.service.cfg.Request(f.ctx, a.Request)
		case lookup.Publish:
			f.setTable(a.Table)
		case lookup.Contact:
			if a.Lost {
				f.endStreams(false, leasehold.Errorf("watch assignment", leasehold.ErrUnavailable, string(f.ns),
					"this manager has had no contact with the leader for %v: another manager may have", a.Age.Round(time.Second)))
			}
		default:
		}
	}
}

func (f *feed) setTable(t *table.Table) {
	f.mu.Lock()
	if f.table == nil {
		f.announce() // clients wait no longer for a table
	}
	f.table = t
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// announce wakes the clients. The lock is held.
func (f *feed) announce() {
	close(f.updated)
	f.updated = make(chan struct{})
}

// publish encodes the newest table, and pauses.
func (f *feed) publish() {
	for {
		select {
		case <-f.changed:
		case <-f.ctx.Done():
			return
		}
		f.mu.Lock()
		t := f.table
		f.mu.Unlock()
		if t.LSN() == 0 {
			continue
		}
		begun := time.Now()
		a, err := encode(t)
		if err != nil {
			f.endStreams(false, err)
			continue
		}
		f.supersede(a)
		if !f.wait(min(maxPause, pausePerEncoding*time.Since(begun))) {
			return
		}
	}
}

// wait reports false if the feed has ended.
func (f *feed) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// supersede publishes an assignment, and cuts the streams of the oldest ones if too much memory is held
// by clients that read slowly.
func (f *feed) supersede(a *assignment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest != nil {
		f.superseded = append(f.superseded, f.newest)
	}
	f.superseded = slices.DeleteFunc(f.superseded, func(a *assignment) bool { return a.senders == 0 })
	held := 0
	for _, old := range f.superseded {
		held += old.size
	}
	for held > f.service.cfg.MaxSuperseded {
		close(f.superseded[0].cut)
		held -= f.superseded[0].size
		f.superseded = f.superseded[1:]
	}
	f.newest = a
	f.announce()
}

// acquire returns the newest assignment if it is newer than the client's; the caller releases it
// after sending. It also returns a channel that is closed when there is a newer one, and reports
// whether the feed has a table.
func (f *feed) acquire(d *delivery) (a *assignment, updated <-chan struct{}, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest != nil && d.begin(f.newest.generation) {
		a = f.newest
		a.senders++
	}
	return a, f.updated, f.table != nil
}

func (f *feed) release(a *assignment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a.senders--
}

// currentEra returns the era of a new stream.
func (f *feed) currentEra() *era {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.era
}

// endStreams ends the streams with an error. Later ones are served unless this is the last era.
func (f *feed) endStreams(last bool, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.era.why != nil {
		return // the last era is over
	}
	f.era.why = why
	close(f.era.over)
	if !last {
		f.era = &era{over: make(chan struct{})}
	}
}

// missing reports whether the namespace does not exist.
func (f *feed) missing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return leasehold.KindOf(f.era.why) == leasehold.ErrNotFound
}

// refused handles a refusal of the manager. Streams end if there is nothing to send: no such
// namespace, or no table.
func (f *feed) refused(why error) {
	f.mu.Lock()
	known := f.table != nil
	f.mu.Unlock()
	if leasehold.KindOf(why) == leasehold.ErrNotFound || !known {
		f.service.remove(f)
		f.endStreams(true, why)
	}
}
