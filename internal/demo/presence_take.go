package demo

import (
	"encoding/binary"
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// An incoming is a range whose statuses come: what is used of [owner.Import].
type incoming interface {
	Records() iter.Seq2[[]byte, error]
}

// aside is statuses that wait for their lease, by the number of their bucket, so
// that whole buckets are put in their place: nobody serves the keys meanwhile.
type aside struct {
	stamp *stamp // of all of them; without a generation until they are installed
	parts map[int]map[leasehold.Key]status
	count int
}

// take sets statuses aside until the lease is here. Of two records of a user the
// later one counts.
func (p *presence) take(in incoming) (install func(leasehold.Lease), err error) {
	a := &aside{stamp: &stamp{}, parts: make(map[int]map[leasehold.Key]status)}
	for record, err := range in.Records() {
		switch {
		case err != nil:
			return nil, err
		case len(record) < headSize:
			return nil, leasehold.Errorf("presence", leasehold.Invalid, "", "a record has %d bytes, want at least %d", len(record), headSize)
		}
		a.add(record)
		if err := p.statuses.room(a.count); err != nil {
			return nil, err
		}
	}
	return func(l leasehold.Lease) { p.statuses.install(l, a) }, nil
}

func (a *aside) add(record []byte) {
	key := leasehold.Key(binary.LittleEndian.Uint64(record))
	part := a.parts[numberOf(key)]
	if part == nil {
		part = make(map[leasehold.Key]status)
		a.parts[numberOf(key)] = part
	}
	if _, again := part[key]; !again {
		a.count++
	}
	part[key] = status{a.stamp, binary.LittleEndian.Uint64(record[8:]), string(record[headSize:])}
}

// install puts what was set aside in its place, as far as the lease covers it.
func (s *statuses) install(l leasehold.Lease, a *aside) {
	a.stamp.generation = l.Generation // nobody has seen any of them yet
	for number, part := range a.parts {
		b := &s.buckets[number]
		b.mu.Lock()
		if l.Range.Covers(keysOf(number)) {
			s.count.Add(int64(len(part) - len(b.known)))
			b.known = part
		} else {
			s.installSome(l.Range, b, part)
		}
		b.mu.Unlock()
	}
}

// installSome is for a bucket that others have a share in.
func (s *statuses) installSome(r leasehold.Range, b *bucket, part map[leasehold.Key]status) {
	for key, v := range part {
		if r.Contains(key) {
			s.put(b, key, v)
		}
	}
}
