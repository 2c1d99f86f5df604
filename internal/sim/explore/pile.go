package explore

import (
	"sync"
	"sync/atomic"
)

// A pile is work that waits for workers who have none. Each has a stack of its own, and
// gives away what is at its bottom, which leads furthest, while somebody waits.
type pile struct {
	mu      sync.Mutex
	filled  sync.Cond
	items   []item
	workers int
	idle    int
	closed  bool
	hungry  atomic.Bool // somebody waits
}

func newPile(workers int) *pile {
	p := &pile{workers: workers}
	p.filled.L = &p.mu
	return p
}

func (p *pile) put(items []item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = append(p.items, items...)
	p.hungry.Store(false)
	p.filled.Broadcast()
}

// close lets all workers end.
func (p *pile) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.hungry.Store(true)
	p.filled.Broadcast()
}

// take returns something to do, nothing if it is all done.
func (p *pile) take(stack []item) []item {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle++
	for len(p.items) == 0 && !p.closed {
		if p.idle == p.workers {
			p.closed = true
			p.filled.Broadcast()
			break
		}
		p.hungry.Store(true)
		p.filled.Wait()
	}
	if p.closed {
		return nil
	}
	p.idle--
	stack = append(stack, p.items[0])
	p.items = p.items[1:]
	return stack
}

// share gives a part of a worker's stack to those who wait, and returns the rest: nothing
// if the search has ended.
func (p *pile) share(stack []item) []item {
	if !p.hungry.Load() {
		return stack
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return nil
	}
	if half := len(stack) / 2; half > 0 {
		p.put(stack[:half])
		stack = append([]item(nil), stack[half:]...)
	}
	return stack
}
