package loadgen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The defaults of the lookup library.
const (
	// Poll is the poll interval of a lookup.
	Poll     = 5 * time.Second
	maxStale = 30 * time.Second
	retry    = 500 * time.Millisecond
	// maxMisses is the number of requests without a reply after which a connection is replaced.
	maxMisses = 3
)

// A lookupSession follows the LSNs of the changes, and confirms that it has all.
type lookupSession struct {
	namespace  string
	poll       time.Duration
	counters   *counters
	send       func(message []byte)
	disconnect func() // replaces a connection without replies; nil with one manager

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

// maxStale is the maximum age of the confirmation, as in the library.
func (l *lookupSession) maxStale() time.Duration { return max(maxStale, 3*l.poll) }

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

// Leave does nothing: a lookup sends no Leave.
func (l *lookupSession) Leave() <-chan struct{} { return nil }

// Resume sends the next request, or repeats one without a reply.
func (l *lookupSession) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.awaiting {
		l.misses++
		if l.disconnect != nil && l.misses%maxMisses == 0 {
			l.disconnect()
		}
	}
	if !l.lost && !l.proven.IsZero() && time.Since(l.proven) > l.maxStale() {
		l.lost = true
		l.counters.Stale.Add(1)
	}
	l.request()
}

// request sends a request. The caller holds the lock.
func (l *lookupSession) request() {
	l.seq++
	l.sent, l.awaiting = time.Now(), true
	l.timer.Reset(jitter(min(retry<<min(l.misses, 6), l.poll)))
	request := &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: l.namespace, Seq: l.seq, Lsn: l.lsn, Crosses: true}
	b, _ := proto.Marshal(request) // cannot fail
	l.send(b)
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

func (l *lookupSession) listener() Listener { return &skimmer{receive: l.receive} }

func (l *lookupSession) receive(u update) {
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
		l.timer.Reset(onBeat(time.Until(l.sent.Add(jitter(l.poll))), l.poll))
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
	return l.lsn, !l.proven.IsZero() && time.Since(l.proven) <= l.maxStale()
}

// An update is the fields of a FollowResponse that a lookup needs.
type update struct {
	echo, lsn, from uint64
	age             time.Duration
	changes, table  bool
	// after and base belong to a crossing; 0 without one.
	after, base uint64
}

// Its field numbers.
const (
	responseUpdate protowire.Number = 2
	updateEcho     protowire.Number = 4
	updateLSN      protowire.Number = 5
	updateAge      protowire.Number = 6
	updateChanges  protowire.Number = 7
	updateTable    protowire.Number = 8
	updateCrossing protowire.Number = 10
)

// The kept bytes of a message. All fields that a lookup needs are before the table or the
// changes, except the echo, which a manager may append to a message that lookups share.
const (
	maxHead = 512
	maxTail = 32
)

// A skimmer parses updates as they arrive. It keeps only the ends of a message: the tables of
// thousands of lookups that connect at once do not fit into memory.
type skimmer struct {
	receive func(update)

	header []byte // of gRPC
	head   []byte
	tail   []byte
	size   int // of the message
	left   int // bytes of it that are missing
}

func (s *skimmer) Take(b []byte) {
	for len(b) > 0 {
		if missing := prefix - len(s.header); missing > 0 {
			n := min(missing, len(b))
			s.header, b = append(s.header, b[:n]...), b[n:]
			if n < missing {
				return
			}
			s.size = int(binary.BigEndian.Uint32(s.header[1:]))
			s.left = s.size
		}
		n := min(len(b), s.left)
		s.keep(b[:n])
		s.left, b = s.left-n, b[n:]
		if s.left == 0 {
			s.receive(s.parse())
			*s = skimmer{receive: s.receive}
		}
	}
}

func (s *skimmer) keep(part []byte) {
	n := min(len(part), maxHead-len(s.head))
	s.head = append(s.head, part[:n]...)
	s.tail = append(s.tail, part[max(0, len(part)-maxTail):]...)
	s.tail = s.tail[max(0, len(s.tail)-maxTail):]
}

// parse parses the kept bytes: a sequence of updates, in which later fields replace earlier
// ones.
func (s *skimmer) parse() (u update) {
	for at := 0; at < s.size; {
		b := s.head[min(at, len(s.head)):]
		if len(b) == 0 {
			b = s.tail[max(0, len(s.tail)-(s.size-at)):]
		}
		number, _, content, n := nextField(b)
		if n == 0 {
			return u
		}
		if number == responseUpdate {
			u.read(content)
		}
		at += n
	}
	return u
}

func (u *update) read(b []byte) {
	for len(b) > 0 {
		number, value, content, n := nextField(b)
		switch number { //nolint:exhaustive // others do not matter
		case updateEcho:
			u.echo = value
		case updateLSN:
			u.lsn = value
		case updateAge:
			u.age = time.Duration(value)
		case updateChanges:
			u.changes, u.from = true, Find(content, 1)
		case updateTable:
			u.table = true
		case updateCrossing:
			u.after, u.base = Find(content, 1), Find(content, 2)
		}
		if n == 0 {
			return
		}
		b = b[min(n, len(b)):]
	}
}

// Find returns the number in the field at a path of nested fields; 0 if it is missing.
func Find(b []byte, path ...protowire.Number) (value uint64) {
	for _, want := range path {
		var (
			number  protowire.Number
			content []byte
			n       int
		)
		for number != want {
			b = b[min(n, len(b)):]
			if number, value, content, n = nextField(b); n == 0 {
				return 0
			}
		}
		b = content
	}
	return value
}

// nextField parses the first field of b, which may be truncated: its number, its value or
// content, and its length. The length is 0 if b does not begin with a field.
func nextField(b []byte) (number protowire.Number, value uint64, content []byte, length int) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, 0, nil, 0
	}
	if kind != protowire.VarintType && kind != protowire.BytesType {
		return number, 0, nil, n + max(0, protowire.ConsumeFieldValue(number, kind, b[n:]))
	}
	value, m := protowire.ConsumeVarint(b[n:])
	if m < 0 {
		return 0, 0, nil, 0
	}
	n += m
	if kind == protowire.VarintType {
		return number, value, nil, n
	}
	if value > math.MaxInt32 {
		return 0, 0, nil, 0
	}
	return number, 0, b[n:min(n+int(value), len(b))], n + int(value)
}
