package crowd

import (
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// What the library's lookups do by default.
const (
	poll  = 5 * time.Second
	stale = 30 * time.Second
	retry = 500 * time.Millisecond
)

// A lookup follows the numbers of the changes, and proves that it knows all.
type lookup struct {
	namespace string
	tally     *tally
	say       func(message []byte)

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
	}
	if !l.lost && !l.proven.IsZero() && time.Since(l.proven) > stale {
		l.lost = true
		l.tally.stale.Add(1)
	}
	l.ask()
}

// ask asks what has changed. The lock is held.
func (l *lookup) ask() {
	l.seq++
	l.sent, l.awaiting = time.Now(), true
	l.timer.Reset(jitter(min(retry<<min(l.misses, 6), poll)))
	request := &leaseholdv1.FollowRequest{Version: wire.Version, Namespace: l.namespace, Seq: l.seq, Lsn: l.lsn}
	b, _ := proto.Marshal(request) // it has nothing that could fail
	l.say(b)
}

// jitter takes up to an eighth off, as the library does.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/8+1) }

// hear takes what the manager says.
func (l *lookup) hear(message []byte) {
	u := readUpdate(message)
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
	}
	if u.echo == l.seq && l.awaiting {
		l.awaiting, l.misses = false, 0
		l.timer.Reset(time.Until(l.sent.Add(jitter(poll))))
		if u.lsn <= l.lsn {
			l.prove()
		}
	}
	if u.lsn > l.lsn && !l.awaiting {
		l.ask()
	}
}

// prove notes that it knew everything when it asked.
func (l *lookup) prove() {
	if l.proven.IsZero() {
		l.tally.firstTable(time.Since(l.begun))
	}
	l.proven, l.lost = l.sent, false
}

// knows reports the last change that it has, and whether it has proof that is not
// too old.
func (l *lookup) knows() (lsn uint64, proof bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lsn, !l.proven.IsZero() && time.Since(l.proven) <= stale
}

// An update is what a lookup reads of a message.
type update struct {
	echo, lsn, from uint64
	changes, table  bool
}

// The numbers of its fields.
const (
	responseUpdate protowire.Number = 2
	updateEcho     protowire.Number = 4
	updateLSN      protowire.Number = 5
	updateChanges  protowire.Number = 7
	updateTable    protowire.Number = 8
	changesFrom    protowire.Number = 1
)

// readUpdate reads it. There may be several parts, of which the later ones
// replace fields of the earlier.
func readUpdate(message []byte) (u update) {
	fields(message, func(n protowire.Number, _ uint64, part []byte) {
		if n != responseUpdate {
			return
		}
		fields(part, func(n protowire.Number, value uint64, inner []byte) {
			switch n { //nolint:exhaustive // others do not matter
			case updateEcho:
				u.echo = value
			case updateLSN:
				u.lsn = value
			case updateTable:
				u.table = true
			case updateChanges:
				u.changes = true
				fields(inner, func(n protowire.Number, value uint64, _ []byte) {
					if n == changesFrom {
						u.from = value
					}
				})
			}
		})
	})
	return u
}

// fields calls each for the fields of a message that are numbers or bytes.
func fields(b []byte, each func(n protowire.Number, value uint64, inner []byte)) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			value, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return
			}
			each(number, value, nil)
			b = b[n:]
		case protowire.BytesType:
			inner, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return
			}
			each(number, 0, inner)
			b = b[n:]
		default:
			n := protowire.ConsumeFieldValue(number, kind, b)
			if n < 0 {
				return
			}
			b = b[n:]
		}
	}
}
