package flease

import "github.com/cespare/xxhash/v2"

// An index finds cells by the hashes of their names. Most resources of a busy system are new and
// soon dropped, and there are more of them than fit into the processor's caches. So adding a cell,
// or a failed lookup, reads one word of memory. It contains no pointers for the garbage collector.
//
// It uses open addressing with linear probing. An entry is the hash and the slot of a cell in one
// word; an empty entry is 0. It is divided into many tables by the upper bits of the hash, so that
// growing one is fast. It does not shrink.
type index struct {
	tables [16]table
}

type table struct {
	words []uint64 // the length is a power of two; more than a third are empty
	n     int
}

const leastTable = 8

// hash is unseeded: names come from members of the group, which could do more harm than collisions.
func (x *index) hash(name string) uint32 { return uint32(xxhash.Sum64String(name)) }

func (x *index) table(hash uint32) *table { return &x.tables[hash>>28] }

func word(hash, slot uint32) uint64 { return uint64(hash)<<32 | uint64(slot) }

// peek returns the word at the start of the search for a hash.
func (x *index) peek(hash uint32) uint64 {
	t := x.table(hash)
	if t.n == 0 {
		return 0
	}
	return t.words[t.home(word(hash, 0))]
}

// add adds a cell that is not in the index.
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

// remove removes a cell. It moves displaced entries after it into the gap, so that they are still
// found.
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

// home is the preferred position of a word.
func (t *table) home(w uint64) int { return int(w>>32) & (len(t.words) - 1) }

func (t *table) after(i int) int { return (i + 1) & (len(t.words) - 1) }
