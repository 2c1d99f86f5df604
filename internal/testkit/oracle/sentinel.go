package oracle

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// Leases is what a sentinel asks of the owner library.
type Leases interface {
	Check(key leasehold.Key) (owner.Lease, bool)
}

// A Sentinel reports what an owner believes about every key, without requests. Requests alone
// would not do: callers that know another owner never call the old one again, even if that still
// believes in its lease.
//
// It checks all keys in rounds, and reports the beginning and the end of a belief, and periodically
// that it continues. What a killed process believed last is lost. It is for one goroutine.
type Sentinel struct {
	leases  Leases
	session leasehold.Session
	keys    []leasehold.Key
	witness func(...Record) error

	beliefs []belief // about each of the keys
	batch   []Record // still to be written, MaxBatch at most
}

// A belief is that a key is held under a generation: the first and the last
// Check of it that succeeded.
type belief struct {
	generation  leasehold.Generation // 0: it is not held
	first, last Span
	news        bool // last has not been told
}

const (
	// The pause between two rounds is roundEvery at least, and restShare times as long as the round:
	// 2,000 keys take about 0.1 ms, and many more are checked less often. It is restMost at most: after
	// a round that took long because the process was stopped, wrong beliefs are most likely.
	roundEvery = 15 * time.Millisecond
	restShare  = 20
	restMost   = 100 * time.Millisecond

	// tellEvery is the interval of reports of beliefs that continue; tellKey bounds their rate.
	tellEvery = 200 * time.Millisecond
	tellKey   = 20 * time.Microsecond

	// chunk is the number of checks that share two readings of the clock.
	chunk = 64
)

// NewSentinel returns a sentinel that watches keys, and tells witness a few records
// at a time.
func NewSentinel(l Leases, session leasehold.Session, keys []leasehold.Key, witness func(...Record) error) *Sentinel {
	return &Sentinel{leases: l, session: session, keys: keys, witness: witness, beliefs: make([]belief, len(keys))}
}

// Run makes rounds until the context ends, or until there is nobody to tell.
func (s *Sentinel) Run(ctx context.Context) error {
	pace := max(tellEvery, time.Duration(len(s.keys))*tellKey)
	var told time.Time
	for {
		begin := time.Now()
		all := begin.Sub(told) >= pace
		if all {
			told = begin
		}
		if err := s.round(all); err != nil {
			return err
		}
		select {
		case <-time.After(min(max(roundEvery, restShare*time.Since(begin)), restMost)):
		case <-ctx.Done():
			return nil
		}
	}
}

// round checks all keys. It tells what has begun or ended, and if all is to be
// told also what goes on.
func (s *Sentinel) round(all bool) error {
	for from := 0; from < len(s.keys); from += chunk {
		keys := s.keys[from:min(from+chunk, len(s.keys))]
		var found [chunk]leasehold.Generation
		call := Timed(func() {
			for i, key := range keys {
				if lease, ok := s.leases.Check(key); ok {
					found[i] = lease.Generation
				}
			}
		})
		for i := range keys {
			if err := s.update(from+i, found[i], call, all); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

// update takes up what a Check of the key with an index has found.
func (s *Sentinel) update(i int, g leasehold.Generation, call Span, all bool) error {
	b := &s.beliefs[i]
	ended := b.generation != g
	if !ended && g != 0 {
		b.last, b.news = call, true
	}
	if b.news && (ended || all) {
		if err := s.tell(i); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	*b = belief{generation: g, first: call, last: call}
	if g == 0 {
		return nil
	}
	return s.tell(i)
}

func (s *Sentinel) tell(i int) error {
	b := &s.beliefs[i]
	b.news = false
	s.batch = append(s.batch, Record{
		About: Belief, Key: s.keys[i], Generation: b.generation, Session: s.session, Check: b.first, Held: b.last,
	})
	if len(s.batch) < MaxBatch {
		return nil
	}
	return s.flush()
}

func (s *Sentinel) flush() error {
	if len(s.batch) == 0 {
		return nil
	}
	err := s.witness(s.batch...)
	s.batch = s.batch[:0]
	return err
}
