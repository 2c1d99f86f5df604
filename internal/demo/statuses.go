package demo

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold"
)

// A status is what is known about a user. The number rises with each status
// that the user sets: a request that was delayed does not undo a later one.
type status struct {
	stamp  *stamp // of the lease under which it was stored
	number uint64 // 0 if nothing is known
	text   string
}

// A stamp is the generation of a lease. Statuses share it, so that a hundred
// thousand that have been set aside are stamped at once.
type stamp struct{ generation leasehold.Generation }

// generation is 0 of what was never stored.
func (s *status) generation() leasehold.Generation {
	if s.stamp == nil {
		return 0
	}
	return s.stamp.generation
}

// statuses are what a server knows, in buckets of neighbouring keys. Each has a
// lock of its own, so that a range can be copied or cleared piece by piece, with
// no request waiting for longer than a bucket takes.
type statuses struct {
	buckets [1 << bucketBits]bucket
	count   atomic.Int64 // of all; maxStatuses at most
}

// bucketBits makes a bucket of a server with 100,000 users hold some hundred of
// them if it owns a tenth of the keys.
const bucketBits = 12

// maxStatuses bounds the memory of a service.
const maxStatuses = 1 << 21

// A bucket is the statuses of the keys that begin with the same bits.
type bucket struct {
	mu     sync.Mutex
	known  map[leasehold.Key]status // nil if nothing is
	copies []*copied                // of ranges that reach into the bucket
	stamp  *stamp                   // the last that was used
}

// stampOf returns a stamp with a generation. The bucket is locked.
func (b *bucket) stampOf(g leasehold.Generation) *stamp {
	if b.stamp == nil || b.stamp.generation != g {
		b.stamp = &stamp{g}
	}
	return b.stamp
}

// numberOf returns the number of the bucket that a key is in.
func numberOf(key leasehold.Key) int { return int(key >> (64 - bucketBits)) }

// keysOf returns the keys of a bucket.
func keysOf(number int) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(number) << (64 - bucketBits), Limit: leasehold.Key(number+1) << (64 - bucketBits)}
}

func (s *statuses) of(key leasehold.Key) *bucket { return &s.buckets[numberOf(key)] }

// within returns the buckets that a range reaches into.
func (s *statuses) within(r leasehold.Range) iter.Seq[*bucket] {
	return func(yield func(*bucket) bool) {
		for i := numberOf(r.Start); i <= numberOf(r.Last()); i++ {
			if !yield(&s.buckets[i]) {
				return
			}
		}
	}
}

// room reports whether n more statuses may be stored.
func (s *statuses) room(n int) error {
	if s.count.Load()+int64(n) > maxStatuses {
		return leasehold.Errorf("presence", leasehold.Limit, "", "%d users are all that fit in", maxStatuses)
	}
	return nil
}

// put stores a status. The bucket is the key's, and locked.
func (s *statuses) put(b *bucket, key leasehold.Key, v status) {
	if b.known == nil {
		b.known = make(map[leasehold.Key]status)
	}
	before := len(b.known)
	b.known[key] = v
	s.count.Add(int64(len(b.known) - before))
	for _, c := range b.copies {
		c.note(key)
	}
}

// clear forgets what was stored in a range under a generation, or an older one.
func (s *statuses) clear(l leasehold.Lease) {
	for b := range s.within(l.Range) {
		b.mu.Lock()
		before := len(b.known)
		for key, v := range b.known {
			if l.Range.Contains(key) && v.generation() <= l.Generation {
				delete(b.known, key)
			}
		}
		s.count.Add(int64(len(b.known) - before))
		b.mu.Unlock()
	}
}
