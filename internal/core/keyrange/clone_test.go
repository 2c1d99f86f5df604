package keyrange_test

import (
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"pgregory.net/rapid"
)

// A relative is a clone, with all writes to it and, before it was cloned, to its ancestors.
type relative struct {
	m *keyrange.Map[byte]
	h history
}

// TestClonesAreIndependent writes to several clones in any order and clones them in between: each
// has only its own writes.
func TestClonesAreIndependent(t *testing.T) {
	const members = 6
	rapid.Check(t, func(t *rapid.T) {
		family := []relative{{m: keyrange.SmallBlocks(keyrange.NewMap[byte](0))}}
		for _, w := range drawHistory().Draw(t, "before") {
			family[0].m.Set(w.r, w.v)
			family[0].h = append(family[0].h, w)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(family)-1).Draw(t, "member")
			one := &family[i]
			if len(family) < members && rapid.IntRange(0, 3).Draw(t, "clone") == 0 {
				family = append(family, relative{one.m.Clone(), one.h[:len(one.h):len(one.h)]})
				continue
			}
			w := write{drawRange().Draw(t, "range"), rapid.ByteRange(0, 3).Draw(t, "value")}
			one.m.Set(w.r, w.v)
			one.h = append(one.h, w)
		}
		for _, one := range family {
			checkMap(t, one.m, one.h)
		}
	})
}

// TestCloneBesideReaders is for the race detector: several goroutines read and clone each version
// of a map while the next version is made from it. Either the clone is changed and the original is
// read, or the reverse.
func TestCloneBesideReaders(t *testing.T) {
	for _, test := range []struct {
		name string
		// part returns the map that is read and the map that is changed.
		part func(original, clone *keyrange.Map[lease]) (read, changed *keyrange.Map[lease])
	}{
		{"the clone changes", func(original, clone *keyrange.Map[lease]) (_, _ *keyrange.Map[lease]) { return original, clone }},
		{"the original changes", func(original, clone *keyrange.Map[lease]) (_, _ *keyrange.Map[lease]) { return clone, original }},
	} {
		t.Run(test.name, func(t *testing.T) {
			const versions, readers, writes = 20, 3, 10
			keys := benchKeys()
			newest := keyrange.NewMap(lease{})
			for i := range leasehold.Key(1000) {
				newest.Set(leasehold.Range{Start: i * benchWidth, Limit: (i + 1) * benchWidth}, lease{generation: leasehold.Generation(i)})
			}
			var reading sync.WaitGroup
			for range versions {
				read, changed := test.part(newest, newest.Clone())
				want := sum(read)
				for range readers {
					reading.Go(func() {
						if got, clone := sum(read), sum(read.Clone()); got != want || clone != want {
							t.Errorf("an unchanged map went from %d to %d, its clone to %d", want, got, clone)
						}
					})
				}
				for _, k := range keys[:writes] {
					r, v := changed.At(k % (1000 * benchWidth))
					v.generation += 1_000_000
					changed.Set(r, v)
					changed.Set(leasehold.Range{Start: k, Limit: k + 9}, v)
				}
				keys, newest = keys[writes:], changed
			}
			reading.Wait()
		})
	}
}

// sum is a checksum of all generations in m.
func sum(m *keyrange.Map[lease]) (total leasehold.Generation) {
	for r, v := range m.All() {
		total = total*31 + v.generation + leasehold.Generation(r.Start)
	}
	return total
}

// TestCloneCopiesOnlyWhatChanged: in a chain of clones with one change each, each copies the block
// that it changed and the one that its parent changed, and shares all others, for any length of the
// chain.
func TestCloneCopiesOnlyWhatChanged(t *testing.T) {
	m := benchMap()
	for i := range leasehold.Key(5) {
		clone := m.Clone()
		r, v := clone.At(i << 61)
		v.generation++
		clone.Set(r, v)
		if shared, all := keyrange.Shared(m, clone); shared < all-2 {
			t.Errorf("clone %d: after one change, %d of %d blocks are shared", i, shared, all)
		}
		m = clone
	}
}
