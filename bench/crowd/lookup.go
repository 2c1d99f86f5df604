package crowd

import (
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// What the library's lookups do by default.
const (
	// Poll is how often a lookup asks.
	Poll  = 5 * time.Second
	stale = 30 * time.Second
	retry = 500 * time.Millisecond
	// mostMisses is after how many questions without an answer a connection is replaced.
	mostMisses = 3
)

// A lookup follows the numbers of the changes, and proves that it knows all.
type lookup struct {
	namespace string
	poll      time.Duration
	tally     *tally
	say       func(message []byte)
	hangUp    func() // ends a connection on which nothing is answered; nil if there is only one manager

	mu       sync.Mutex
	timer    *time.Timer
	seq      uint64
	lsn      uint64
	sent     time.Time
	awaiting bool
	misses   int
	proven   time.Time // when it last knew everything; zero if it never has
	begun    time.Time
	lost     bool // it has counted itself among those that know too little
	ended    bool
}

// stale is how old its proof may be, as the library has it.
func (l *lookup) stale() time.Duration { return max(stale, 3*l.poll) }

// begin asks for the first time.
func (l *lookup) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = time.Now()
	l.timer = time.AfterFunc(time.Hour, l.wake)
	l.ask()
}

// end says no more.
func (l *lookup) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *lookup) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.awaiting {
		l.misses++
		l.tally.repeats.Add(1)
		if l.hangUp != nil && l.misses%mostMisses == 0 {
			l.hangUp()
		}
	}
	if !l.lost && !l.proven.IsZero() && time.Since(l.proven) > l.stale() {
		l.lost = true
		l.tally.stale.Add(1)
	}
	l.ask()
}

// ask asks what has changed. The lock is held.
func (l *lookup) ask() {
	l.seq++
	l.sent, l.awaiting = time.Now(), true
	l.timer.Reset(jitter(min(retry<<min(l.misses, 6), l.poll)))
	request := &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: l.namespace, Seq: l.seq, Lsn: l.lsn, Crosses: true}
	b, _ := proto.Marshal(request) // it has nothing that could fail
	l.say(b)
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

// listen returns what takes what the manager says, on a new connection.
func (l *lookup) listen() listener { return &skimmer{hear: l.hear} }

// hear takes what the manager says.
func (l *lookup) hear(u update) {
	if u.lsn == 0 && u.echo == 0 {
		l.tally.strange.Add(1) // it leads nobody, or refuses
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return
	case u.table || u.changes && u.from <= l.lsn:
		l.lsn = max(l.lsn, u.lsn)
	case u.changes:
		l.tally.gaps.Add(1)
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
		l.ask()
	}
}

// prove notes that it knew everything when it asked, but for what the manager itself has
// not known for a while.
func (l *lookup) prove(age time.Duration) {
	if l.proven.IsZero() {
		l.tally.firstTable(time.Since(l.begun))
	}
	if known := l.sent.Add(-age); known.After(l.proven) {
		l.proven = known
	}
	l.lost = false
}

// knows reports the last change that it has, and whether it has proof that is not
// too old.
func (l *lookup) knows() (lsn uint64, proof bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lsn, !l.proven.IsZero() && time.Since(l.proven) <= l.stale()
}
