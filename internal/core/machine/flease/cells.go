package flease

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Ref is where a process keeps what it knows about a resource, in its own
// words. A message says where the sender keeps it, and the answer to it repeats
// that: so only a read needs a name, and only reads are looked up by it. Zero is
// none.
//
// Refs are used again, for other resources. So a ref proves nothing: what an
// acceptor writes must have been promised to the very same process in the same
// round, and what a proposer counts must be of its present round. No process ever
// uses a ballot twice, so either tells that the resource is the same.
type Ref uint32

// cells are what is known about resources. Room that was needed once is kept, and
// used again.
type cells struct {
	index index
	slots []*cell // by Ref; the first is nil
	free  []Ref   // slots that are not in use
	n     int
	fresh []cell // that never were in use

	warmth uint64 // means nothing

	oldest, newest *cell // a list, in the order of touched
}

const (
	cellsAtOnce = 64 // at most, when there is no room
)

func newCells() cells { return cells{slots: make([]*cell, 1)} }

// find returns the cell of a resource, or nil, and the name's hash.
func (s *cells) find(name string) (*cell, uint32) {
	hash := s.index.hash(name)
	t := s.index.table(hash)
	if t.n == 0 {
		return nil, hash
	}
	for i := t.home(word(hash, 0)); t.words[i] != 0; i = t.after(i) {
		if w := t.words[i]; w>>32 == uint64(hash) {
			if c := s.slots[uint32(w)]; c.name == name {
				return c, hash
			}
		}
	}
	return nil, hash
}

// Ahead is for how many resources the index is read before the first of them is
// looked for. To wait for the memory is most of what it costs to find one; so the
// processor waits for many at a time, since none of them depends on another.
const Ahead = 32

// warm reads what will have to be read to find a cell.
func (s *cells) warm(name string) {
	s.warmth += s.index.peek(s.index.hash(name)) // or nobody would need what was read
}

// at returns the cell that a message is about; nil if there is none. It may be
// another one than its sender means.
func (s *cells) at(r Ref) *cell {
	if int(r) >= len(s.slots) {
		return nil
	}
	if c := s.slots[r]; c != nil && c.group != nil {
		return c
	}
	return nil
}

// add makes a cell for a resource that has none.
func (s *cells) add(now mono.Instant, name string, hash uint32, g *group) *cell {
	c := s.room()
	*c = cell{name: strings.Clone(name), hash: hash, ref: c.ref, group: g, touched: now}
	s.index.add(hash, uint32(c.ref))
	s.append(c)
	s.n++
	return c
}

// room returns a cell that is not in use.
func (s *cells) room() *cell {
	if last := len(s.free) - 1; last >= 0 {
		r := s.free[last]
		s.free = s.free[:last]
		if s.slots[r] == nil {
			s.slots[r] = &cell{ref: r}
		}
		return s.slots[r]
	}
	if len(s.fresh) == 0 {
		s.fresh = make([]cell, min(len(s.slots), cellsAtOnce))
	}
	c := &s.fresh[0]
	s.fresh = s.fresh[1:]
	c.ref = Ref(len(s.slots))
	if len(s.slots) == cap(s.slots) {
		s.slots = slices.Grow(s.slots, len(s.slots)) // append would copy them more often
	}
	s.slots = append(s.slots, c)
	return c
}

// remove forgets a cell.
func (s *cells) remove(c *cell) {
	s.index.remove(c.hash, uint32(c.ref))
	s.unlink(c)
	s.n--
	s.free = append(s.free, c.ref)
	*c = cell{ref: c.ref}
}

// touch notes that a cell is of use. It may have been noted already, not longer
// ago than grain: then nothing is done.
func (s *cells) touch(now mono.Instant, c *cell, grain time.Duration) {
	if now.Sub(c.touched) < grain {
		return
	}
	s.unlink(c)
	c.touched = now
	s.append(c)
}

func (s *cells) append(c *cell) {
	c.older, c.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = c
	} else {
		s.oldest = c
	}
	s.newest = c
}

func (s *cells) unlink(c *cell) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		s.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		s.newest = c.older
	}
}

// twins returns a copy, whose cells have copies of the groups.
func (s *cells) twins(groups map[*group]*group) cells {
	out := cells{index: s.index, slots: make([]*cell, len(s.slots)), free: slices.Clone(s.free), n: s.n}
	for i := range out.index.tables {
		t := &out.index.tables[i]
		t.words = slices.Clone(t.words)
	}
	for c := s.oldest; c != nil; c = c.newer {
		twin := *c
		twin.group = groups[c.group]
		out.slots[c.ref] = &twin
		out.append(&twin)
	}
	return out
}
