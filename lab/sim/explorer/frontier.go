package explorer

import "sync"

// A frontier is the stack of states that have not been explored, shared by the workers. The last state is
// explored first, so the search is depth first and the stack stays small.
type frontier[T any] struct {
	mu     sync.Mutex
	filled sync.Cond
	items  []T
	busy   int // workers that may add items
	closed bool
}

func newFrontier[T any](root T) *frontier[T] {
	f := &frontier[T]{items: []T{root}}
	f.filled.L = &f.mu
	return f
}

func (f *frontier[T]) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.filled.Broadcast()
}

// take removes the last item. It returns false if the search has ended. A worker that has taken an item calls
// put before it takes another.
func (f *frontier[T]) take() (item T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.items) == 0 && f.busy > 0 && !f.closed {
		f.filled.Wait()
	}
	if f.closed || len(f.items) == 0 {
		return item, false
	}
	f.busy++
	last := len(f.items) - 1
	item, f.items[last] = f.items[last], item
	f.items = f.items[:last]
	return item, true
}

// put adds the successors of an item that was taken.
func (f *frontier[T]) put(items []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	f.items = append(f.items, items...)
	f.filled.Broadcast()
}

// fingerprints maps a very large number of hashes to small numbers. It is safe for concurrent use.
type fingerprints struct {
	parts [64]struct {
		mu    sync.Mutex
		value map[uint64]uint8
	}
}

// raise sets the number of a hash to v, unless it is higher. It reports whether there was one, and whether it
// has changed.
func (f *fingerprints) raise(key uint64, v uint8) (known, raised bool) {
	p := &f.parts[key>>58]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.value == nil {
		p.value = make(map[uint64]uint8)
	}
	before, known := p.value[key]
	if known && before >= v {
		return true, false
	}
	p.value[key] = v
	return known, true
}

func (f *fingerprints) len() uint64 {
	n := 0
	for i := range f.parts {
		p := &f.parts[i]
		p.mu.Lock()
		n += len(p.value)
		p.mu.Unlock()
	}
	return uint64(n)
}
