package oracle

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// Leases is the part of the owner library that a sentinel uses.
type Leases interface {
	Check(key leasehold.Key) (owner.Lease, bool)
}

// A Sentinel records the keys that an owner holds, without requests. Requests are not sufficient: callers
// with a newer table send no requests to the old owner, even if its checks still succeed.
//
// It checks all keys in rounds. It records the start and the end of each tenure, and periodically its
// continuation. The last tenures of a killed process may be incomplete. It is for one goroutine.
type Sentinel struct {
	leases  Leases
	session leasehold.Session
	keys    []leasehold.Key
	witness func(...Record) error

	tenures []keyTenure // of the keys, by index
	batch   []Record    // unwritten, MaxBatch at most
}

// A keyTenure is the tenure of a key with a generation: the first and the last successful Check.
type keyTenure struct {
	generation  leasehold.Generation // 0: not held
	first, last Span
	dirty       bool // last is not recorded
}

const (
	// The pause between two rounds is pausePerRound times the duration of the round, from minPause to
	// maxPause. 2,000 keys take about 0.1 ms; many more are checked less often. maxPause matters after a
	// round during which the process was stopped: stale leases are most likely then.
	minPause      = 15 * time.Millisecond
	pausePerRound = 20
	maxPause      = 100 * time.Millisecond

	// reportInterval is the interval of records of continuing tenures, with at least reportPerKey per
	// key.
	reportInterval = 200 * time.Millisecond
	reportPerKey   = 20 * time.Microsecond

	// chunk is the number of checks that share two clock readings.
	chunk = 64
)

// NewSentinel returns a sentinel for keys. It calls witness with a few records at a time.
func NewSentinel(l Leases, session leasehold.Session, keys []leasehold.Key, witness func(...Record) error) *Sentinel {
	return &Sentinel{leases: l, session: session, keys: keys, witness: witness, tenures: make([]keyTenure, len(keys))}
}

// Run runs rounds until the context ends or witness fails.
func (s *Sentinel) Run(ctx context.Context) error {
	interval := max(reportInterval, time.Duration(len(s.keys))*reportPerKey)
	var reported time.Time
	for {
		begin := time.Now()
		all := begin.Sub(reported) >= interval
		if all {
			reported = begin
		}
		if err := s.round(all); err != nil {
			return err
		}
		select {
		case <-time.After(min(max(minPause, pausePerRound*time.Since(begin)), maxPause)):
		case <-ctx.Done():
			return nil
		}
	}
}

// round checks all keys. It records starts and ends of tenures, and if all is true also continuing ones.
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

// update processes the result of a Check of the key with index i.
func (s *Sentinel) update(i int, g leasehold.Generation, call Span, all bool) error {
	b := &s.tenures[i]
	ended := b.generation != g
	if !ended && g != 0 {
		b.last, b.dirty = call, true
	}
	if b.dirty && (ended || all) {
		if err := s.record(i); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	*b = keyTenure{generation: g, first: call, last: call}
	if g == 0 {
		return nil
	}
	return s.record(i)
}

func (s *Sentinel) record(i int) error {
	b := &s.tenures[i]
	b.dirty = false
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
