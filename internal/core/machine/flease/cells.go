package flease

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Ref identifies a process's cell of a resource, and is assigned by that process. A message
// contains the sender's ref, and the reply repeats it: so only a read needs a name and a lookup by
// name. Zero is none.
//
// Refs are reused for other resources, so a ref proves nothing. An acceptor stores a value only if
// it has promised that round to the same process, and a proposer counts a reply only if it is of
// its present round. No process ever uses a ballot twice, so in both cases the resource is the
// right one.
type Ref uint32

// cells are the known resources. Memory is kept and reused.
type cells struct {
	index index
	slots []*cell // by Ref; the first is nil
	free  []Ref   // unused slots
	n     int
	fresh []cell // allocated and never used

	warmth uint64 // has no meaning, see warm

	oldest, newest *cell // a list, in the order of touched
}

const (
	cellsAtOnce = 64 // maximum number of cells in one allocation
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

// Ahead is the number of resources for which the index is read in advance. Memory latency dominates
// the cost of a lookup; independent reads let the processor overlap the latency of many.
const Ahead = 32

// warm reads the index entry of a cell in advance.
func (s *cells) warm(name string) {
	s.warmth += s.index.peek(s.index.hash(name)) // otherwise the compiler could drop the read
}

// at returns the cell at a ref; nil if there is none. It may be the cell of another resource than
// the sender's.
func (s *cells) at(r Ref) *cell {
	if int(r) >= len(s.slots) {
		return nil
	}
	if c := s.slots[r]; c != nil && c.group != nil {
		return c
	}
	return nil
}

// add adds a cell for a new resource.
func (s *cells) add(now mono.Instant, name string, hash uint32, g *group) *cell {
	c := s.unused()
	*c = cell{name: strings.Clone(name), hash: hash, ref: c.ref, group: g, touched: now}
	s.index.add(hash, uint32(c.ref))
	s.append(c)
	s.n++
	return c
}

// unused returns an unused cell.
func (s *cells) unused() *cell {
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
		s.slots = slices.Grow(s.slots, len(s.slots)) // append would copy more often
	}
	s.slots = append(s.slots, c)
	return c
}

// remove removes a cell.
func (s *cells) remove(c *cell) {
	s.index.remove(c.hash, uint32(c.ref))
	s.unlink(c)
	s.n--
	s.free = append(s.free, c.ref)
	*c = cell{ref: c.ref}
}

// touch records the use of a cell, unless the last record is younger than grain.
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

// twins returns a deep copy, whose cells have copies of the groups.
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
