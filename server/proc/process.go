package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// A Process is a name whose process is killed and started again, by many goroutines at once.
type Process struct {
	Name   string
	Launch Launch
	// Ended, if set, is called when the process ends without Kill or Terminate.
	Ended func(error)

	mu          sync.Mutex
	now         *instance // nil if there is none
	paused      bool
	incarnation int
	watching    sync.WaitGroup
}

// Start starts a process.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, err := p.Launch.start()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.now, p.paused = i, false
	p.incarnation++
	p.watching.Go(func() {
		<-i.done
		if i.err != nil && !i.terminated.Load() && p.Ended != nil { // Terminate returns its error
			p.Ended(fmt.Errorf("%s: %w; %s", p.Name, i.err, Tail(p.Launch.Log)))
		}
	})
	return nil
}

// Kill ends the process with SIGKILL, if there is one. It returns when the process is gone
// and its output has been read. A supervisor reports the end first.
func (p *Process) Kill() { p.end((*instance).kill) }

func (p *Process) end(how func(*instance)) {
	p.mu.Lock()
	i := p.now
	p.now = nil
	p.mu.Unlock()
	if i != nil {
		i.killed.Store(true)
		how(i)
		<-i.done
	}
}

// Terminate sends SIGTERM and waits until the process has ended. If the context ends before
// that, the process is killed.
func (p *Process) Terminate(ctx context.Context) error {
	i := p.instance()
	if i == nil {
		return nil
	}
	i.terminated.Store(true)
	err := i.cmd.Process.Signal(syscall.SIGTERM)
	if err == nil {
		select {
		case <-i.done:
			err = i.err
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		err = fmt.Errorf("ending %s: %w; %s", p.Name, err, Tail(p.Launch.Log))
	}
	p.Kill()
	return err
}

// Close kills the process, with its supervisor, and waits for a call of Ended.
func (p *Process) Close() {
	p.end((*instance).killAll)
	p.watching.Wait()
}

// Pause stops the process with SIGSTOP. To others it looks dead until Resume.
func (p *Process) Pause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = true
	return p.now.program.Signal(pauseSignal)
}

// Resume continues a paused process. That is another incarnation: it may have lost what it held.
func (p *Process) Resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = false
	p.incarnation++
	return p.now.program.Signal(resumeSignal)
}

// Signal sends a signal, which a supervisor forwards.
func (p *Process) Signal(s os.Signal) error {
	i := p.instance()
	if i == nil {
		return os.ErrProcessDone
	}
	return i.cmd.Process.Signal(s)
}

// Stdin is the standard input of the process.
func (p *Process) Stdin() io.Writer { return p.instance().stdin }

// Wait waits until the process has ended by itself, and returns its exit status.
func (p *Process) Wait(ctx context.Context) (status int, err error) {
	i := p.instance()
	if i == nil {
		return 0, errors.New(p.Name + " was not started")
	}
	select {
	case <-i.done:
		return i.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s has not ended: %w", p.Name, ctx.Err())
	}
}

// Alive reports whether there is a process that has not ended.
func (p *Process) Alive() bool {
	i := p.instance()
	if i == nil {
		return false
	}
	select {
	case <-i.done:
		return false
	default:
		return true
	}
}

// Pid returns the process id, that of the supervisor if there is one, and 0 if there is none.
func (p *Process) Pid() int {
	if i := p.instance(); i != nil {
		return i.cmd.Process.Pid
	}
	return 0
}

func (p *Process) instance() *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Incarnation counts starts and resumptions. It is 0 if the process is dead or paused.
func (p *Process) Incarnation() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || p.paused {
		return 0
	}
	return p.incarnation
}
