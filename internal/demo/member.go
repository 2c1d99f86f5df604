package demo

import (
	"context"
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
	stopped  bool     // its process does not run for now
	lives    int      // how often it was started, or went on
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
	m.process, m.stopped = p, false
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

// finish asks its process to end by itself, and waits for that as long as the
// context allows. An error leaves it without a process all the same.
func (m *member) finish(ctx context.Context) error {
	m.mu.Lock()
	p := m.process
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	err := p.finish(ctx)
	if err != nil {
		err = fmt.Errorf("ending %s: %w; %s", m.name, err, tail(m.launch.log))
	}
	m.kill()
	return err
}

// close is kill for good.
func (m *member) close() {
	m.kill()
	m.watching.Wait()
}

// stop halts its process with SIGSTOP: it does nothing any more, and does not
// know. For all others that is as if it had died, until it goes on.
func (m *member) stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	return suspend(m.process.cmd.Process)
}

// goOn lets a process that was stopped go on where it was. That begins another
// life: it may have lost what it held.
func (m *member) goOn() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = false
	m.lives++
	return resume(m.process.cmd.Process)
}

// life returns which of its lives it is in, 0 if it is dead or stopped.
func (m *member) life() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil || m.stopped {
		return 0
	}
	return m.lives
}
