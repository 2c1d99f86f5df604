package child

import (
	"context"
	"fmt"
	"sync"
)

// A Child is a name whose process is killed and started again. It may be used from many
// goroutines at once.
type Child struct {
	Name   string
	Launch Launch
	Ended  func(error) // is called if its process ends that was neither killed nor asked to end

	mu       sync.Mutex
	process  *process // nil while it is dead
	stopped  bool     // its process does not run for now
	lives    int      // how often it was started, or went on
	watching sync.WaitGroup
}

// Start gives it a process.
func (c *Child) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.Launch.start()
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.Name, err)
	}
	c.process, c.stopped = p, false
	c.lives++
	c.watching.Go(func() {
		<-p.done
		if p.err != nil && !p.asked.Load() { // Finish returns the error of one that was asked
			c.Ended(fmt.Errorf("%s: %w; %s", c.Name, p.err, Tail(c.Launch.Log)))
		}
	})
	return nil
}

// Kill takes its process away with kill -9, if it has one. It returns when that
// is gone and all that it wrote has been read.
func (c *Child) Kill() {
	c.mu.Lock()
	p := c.process
	c.process = nil
	c.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// Finish asks its process to end by itself, and waits for that as long as the
// context allows. An error leaves it without a process all the same.
func (c *Child) Finish(ctx context.Context) error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	err := p.finish(ctx)
	if err != nil {
		err = fmt.Errorf("ending %s: %w; %s", c.Name, err, Tail(c.Launch.Log))
	}
	c.Kill()
	return err
}

// Close is kill for good.
func (c *Child) Close() {
	c.Kill()
	c.watching.Wait()
}

// Stop halts its process with SIGSTOP: it does nothing any more, and does not
// know. For all others that is as if it had died, until it goes on.
func (c *Child) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	return suspend(c.process.cmd.Process)
}

// GoOn lets a process that was stopped go on where it was. That begins another
// life: it may have lost what it held.
func (c *Child) GoOn() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = false
	c.lives++
	return resume(c.process.cmd.Process)
}

// Pid returns the number of its process, 0 if it is dead.
func (c *Child) Pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.cmd.Process.Pid
}

// Life returns which of its lives it is in, 0 if it is dead or stopped.
func (c *Child) Life() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || c.stopped {
		return 0
	}
	return c.lives
}
