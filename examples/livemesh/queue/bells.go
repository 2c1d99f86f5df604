package queue

import (
	"maps"
	"slices"
	"sync"
)

// bells wake devices that wait for messages.
type bells struct {
	mu      sync.Mutex
	waiting map[string]*bell
}

// A bell is one queue's.
type bell struct {
	rung    chan struct{}
	waiters int
}

// wait returns what is closed when the bell is rung; the caller says when it no longer
// waits.
func (b *bells) wait(name string) (rung <-chan struct{}, forget func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.waiting[name]
	if one == nil {
		one = &bell{rung: make(chan struct{})}
		b.waiting[name] = one
	}
	one.waiters++
	return one.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if one.waiters--; one.waiters == 0 && b.waiting[name] == one {
			delete(b.waiting, name)
		}
	}
}

// ring wakes the devices that wait for messages of some queues.
func (b *bells) ring(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if one := b.waiting[name]; one != nil {
			close(one.rung)
			delete(b.waiting, name)
		}
	}
}

func (b *bells) ringAll() {
	b.mu.Lock()
	names := slices.Collect(maps.Keys(b.waiting))
	b.mu.Unlock()
	b.ring(names...)
}
