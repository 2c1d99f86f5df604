package loadgen

import (
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The defaults of the lookup library.
const (
	// Poll is how often a lookup sends a request.
	Poll     = 5 * time.Second
	maxStale = 30 * time.Second
	retry    = 500 * time.Millisecond
	// maxMisses is after how many requests without a reply a connection is replaced.
	maxMisses = 3
)

// A lookupSession follows the LSNs of the changes, and proves that it has all.
type lookupSession struct {
	namespace string
	poll      time.Duration
	tally     *tally
	send      func(message []byte)
	hangUp    func() // ends a connection without replies; nil if there is only one manager

	mu       sync.Mutex
	timer    *time.Timer
	seq      uint64
	lsn      uint64
	sent     time.Time
	awaiting bool
	misses   int
	proven   time.Time // when it last had the newest table; zero if it never had
	lost     bool      // it is counted as stale
	ended    bool
}

// maxStale is how old its proof may be, as the library has it.
func (l *lookupSession) maxStale() time.Duration { return max(maxStale, 3*l.poll) }

// begin sends the first request.
func (l *lookupSession) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Hour, l.resume)
	l.request()
}

// end sends no more.
func (l *lookupSession) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// leave is end: a lookup says no goodbye.
func (l *lookupSession) leave() <-chan struct{} { return nil }

// resume sends the next request, or repeats one without a reply.
func (l *lookupSession) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.awaiting {
		l.misses++
		if l.hangUp != nil && l.misses%maxMisses == 0 {
			l.hangUp()
		}
	}
	if !l.lost && !l.proven.IsZero() && time.Since(l.proven) > l.maxStale() {
		l.lost = true
		l.tally.Stale.Add(1)
	}
	l.request()
}

// request asks for changes. The lock is held.
func (l *lookupSession) request() {
	l.seq++
	l.sent, l.awaiting = time.Now(), true
	l.timer.Reset(jitter(min(retry<<min(l.misses, 6), l.poll)))
	request := &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: l.namespace, Seq: l.seq, Lsn: l.lsn, Crosses: true}
	b, _ := proto.Marshal(request) // it has nothing that could fail
	l.send(b)
}

// jitter takes up to an eighth off, as the library does.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/8+1) }

// onBeat makes a pause end with a beat, as the library does.
func onBeat(pause, interval time.Duration) time.Duration {
	now := wall.Now()
	return beats.Last(now.Add(pause), interval).Sub(now)
}

// All lookups of a process have the same beats.
var (
	wall  = clock.New()
	beats = wall.Beats()
)

func (l *lookupSession) listener() Listener { return &skimmer{receive: l.receive} }

// receive takes a message of the manager.
func (l *lookupSession) receive(u update) {
	if u.lsn == 0 && u.echo == 0 {
		l.tally.Strange.Add(1) // the manager does not lead, or refuses
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return
	case u.table || u.changes && u.from <= l.lsn:
		l.lsn = max(l.lsn, u.lsn)
	case u.base != 0 && u.after == l.lsn:
		l.lsn = u.base
	}
	if u.echo == l.seq && l.awaiting {
		l.awaiting, l.misses = false, 0
		l.timer.Reset(onBeat(time.Until(l.sent.Add(jitter(l.poll))), l.poll))
		if u.lsn <= l.lsn {
			l.prove(u.age)
		}
	}
	if u.lsn > l.lsn && !l.awaiting {
		l.request()
	}
}

// prove records that it had the newest table when it sent its request, less the age
// of the manager's own.
func (l *lookupSession) prove(age time.Duration) {
	if known := l.sent.Add(-age); known.After(l.proven) {
		l.proven = known
	}
	l.lost = false
}

// proof returns the last change that it has, and whether its proof is not too old.
func (l *lookupSession) proof() (lsn uint64, proven bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lsn, !l.proven.IsZero() && time.Since(l.proven) <= l.maxStale()
}
