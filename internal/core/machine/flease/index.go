package flease

import "github.com/cespare/xxhash/v2"

// An index finds cells by the hashes of their names. Most resources that a busy
// system asks about are new and soon forgotten, and there are more of them than
// a processor's caches have room for: so to add one, and to find out that it is
// not there, reads one word of memory. The garbage collector has nothing to do
// with it.
//
// It is open addressing with linear probing. An entry is the hash and the slot of
// a cell, in a word; an empty one is 0. It is many tables by the upper bits of the
// hash, so that none takes long to grow. It keeps the room that it once needed.
type index struct {
	tables [16]table
}

type table struct {
	words []uint64 // as many as a power of two; more than a third are empty
	n     int
}

const leastTable = 8

// hash is the same everywhere: names come from members of the group, who have better
// means to do harm than names that collide.
func (x *index) hash(name string) uint32 { return uint32(xxhash.Sum64String(name)) }

func (x *index) table(hash uint32) *table { return &x.tables[hash>>28] }

func word(hash, slot uint32) uint64 { return uint64(hash)<<32 | uint64(slot) }

// peek returns the word where the search for a hash begins.
func (x *index) peek(hash uint32) uint64 {
	t := x.table(hash)
	if t.n == 0 {
		return 0
	}
	return t.words[t.home(word(hash, 0))]
}

// add adds a cell that is not there.
func (x *index) add(hash, slot uint32) {
	t := x.table(hash)
	t.n++
	if 3*t.n > 2*len(t.words) {
		old := t.words
		t.words = make([]uint64, max(leastTable, 2*len(old)))
		for _, w := range old {
			if w != 0 {
				t.put(w)
			}
		}
	}
	t.put(word(hash, slot))
}

func (t *table) put(w uint64) {
	i := t.home(w)
	for t.words[i] != 0 {
		i = t.after(i)
	}
	t.words[i] = w
}

// remove removes a cell that is there. Those behind it that are not where they
// belong move up, so that no gap keeps them from being found.
func (x *index) remove(hash, slot uint32) {
	t := x.table(hash)
	t.n--
	w := word(hash, slot)
	gap := t.home(w)
	for t.words[gap] != w {
		gap = t.after(gap)
	}
	last := len(t.words) - 1
	for i := t.after(gap); t.words[i] != 0; i = t.after(i) {
		if away := (i - t.home(t.words[i])) & last; away >= (i-gap)&last {
			t.words[gap] = t.words[i]
			gap = i
		}
	}
	t.words[gap] = 0
}

// home is where a word belongs.
func (t *table) home(w uint64) int { return int(w>>32) & (len(t.words) - 1) }

func (t *table) after(i int) int { return (i + 1) & (len(t.words) - 1) }
