package demo

import (
	"fmt"
	"sync"
)

// A member is a manager or an owner: a name whose process is killed and started
// again. It may be used from many goroutines at once.
type member struct {
	name   string
	addr   string // where a manager listens; owners choose anew each time
	launch launch
	ended  func(error) // is told if its process ends though nobody killed it

	mu       sync.Mutex
	process  *process // nil while it is dead
	lives    int      // how often it was started
	watching sync.WaitGroup
}

// start gives it a process.
func (m *member) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.launch.start()
	if err != nil {
		return fmt.Errorf("starting %s: %w", m.name, err)
	}
	m.process = p
	m.lives++
	m.watching.Go(func() {
		<-p.done
		if p.err != nil {
			m.ended(fmt.Errorf("%s: %w; %s", m.name, p.err, tail(m.launch.log)))
		}
	})
	return nil
}

// kill takes its process away with kill -9, if it has one. It returns when that
// is gone and all that it wrote has been read.
func (m *member) kill() {
	m.mu.Lock()
	p := m.process
	m.process = nil
	m.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// close is kill for good.
func (m *member) close() {
	m.kill()
	m.watching.Wait()
}

// life returns which of its lives it is in, 0 if it is dead.
func (m *member) life() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return 0
	}
	return m.lives
}
