package explorer

import (
	"sync"
	"sync/atomic"
)

// A pile is work that waits for workers without any. Each worker has a stack of its own, and
// gives away the bottom of it, which leads furthest, while another waits.
type pile[T any] struct {
	mu      sync.Mutex
	filled  sync.Cond
	items   []T
	workers int
	idle    int
	closed  bool
	hungry  atomic.Bool // a worker waits
}

func newPile[T any](workers int) *pile[T] {
	p := &pile[T]{workers: workers}
	p.filled.L = &p.mu
	return p
}

func (p *pile[T]) put(items []T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = append(p.items, items...)
	p.hungry.Store(false)
	p.filled.Broadcast()
}

// close lets all workers end.
func (p *pile[T]) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.hungry.Store(true)
	p.filled.Broadcast()
}

// take returns something to do, nothing if it is all done.
func (p *pile[T]) take(stack []T) []T {
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

// share gives a part of a worker's stack to those that wait, and returns the rest: nothing
// if the search has ended.
func (p *pile[T]) share(stack []T) []T {
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
		stack = append([]T(nil), stack[half:]...)
	}
	return stack
}
