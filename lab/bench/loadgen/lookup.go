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
	// poll is the poll interval of a lookup.
	poll     = 5 * time.Second
	maxStale = 30 * time.Second
	retry    = 500 * time.Millisecond
	// maxMisses is the number of requests without a reply after which a connection is replaced.
	maxMisses = 3
)

func (c *Clients) newLookup(number int) *client {
	one := &client{all: c, managers: c.Managers, number: number, method: leaseholdv1.LookupService_Follow_FullMethodName}
	one.enter = func() (session, error) {
		return &lookupSession{
			namespace: c.Namespace, lsn: c.lsn, counters: &c.counters, send: one.send, disconnect: one.disconnect,
		}, nil
	}
	return one
}

// A lookupSession follows the LSNs of the changes, and confirms that it has all.
type lookupSession struct {
	namespace  string
	counters   *counters
	send       func(proto.Message)
	disconnect func() // replaces a connection without replies

	mu       sync.Mutex
	timer    *time.Timer
	seq      uint64
	lsn      uint64
	sent     time.Time
	awaiting bool
	misses   int
	proven   time.Time // when it last had the newest table; zero if never
	lost     bool      // counted as stale
	ended    bool
}

func (l *lookupSession) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Hour, l.Resume)
	l.request()
}

func (l *lookupSession) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// Resume sends the next request, or repeats one without a reply.
func (l *lookupSession) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.awaiting {
		l.misses++
		if l.misses%maxMisses == 0 {
			l.disconnect()
		}
	}
	if !l.lost && !l.proven.IsZero() && time.Since(l.proven) > maxStale {
		l.lost = true
		l.counters.Stale.Add(1)
	}
	l.request()
}

// request sends a request. The caller holds the lock.
func (l *lookupSession) request() {
	l.seq++
	l.sent, l.awaiting = time.Now(), true
	l.timer.Reset(jitter(min(retry<<min(l.misses, 6), poll)))
	l.send(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: l.namespace, Seq: l.seq, Lsn: l.lsn, Crosses: true})
}

// jitter reduces a time by up to an eighth, like the library.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/8+1) }

// onBeat makes a pause end with a beat, like the library.
func onBeat(pause, interval time.Duration) time.Duration {
	now := wall.Now()
	return beats.Last(now.Add(pause), interval).Sub(now)
}

// All lookups of a process share the beats.
var (
	wall  = clock.New()
	beats = wall.Beats()
)

func (l *lookupSession) receive(message []byte) {
	u := parseUpdate(message)
	if u.lsn == 0 && u.echo == 0 {
		l.counters.Strange.Add(1) // not the leader, or a refusal
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
		l.timer.Reset(onBeat(time.Until(l.sent.Add(jitter(poll))), poll))
		if u.lsn <= l.lsn {
			l.prove(u.age)
		}
	}
	if u.lsn > l.lsn && !l.awaiting {
		l.request()
	}
}

// prove records that the table was the newest when the request was sent, minus the age of the
// manager's table.
func (l *lookupSession) prove(age time.Duration) {
	if known := l.sent.Add(-age); known.After(l.proven) {
		l.proven = known
	}
	l.lost = false
}

// proof returns the LSN, and whether the confirmation is recent.
func (l *lookupSession) proof() (lsn uint64, proven bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lsn, !l.proven.IsZero() && time.Since(l.proven) <= maxStale
}
