package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"
)

// childRole is the first argument of a child; the second is the name of a path.
const childRole = "count-one-path"

const (
	repetitions = 8   // the minimum counts: some refill a cache of the allocator
	warmUps     = 300 // not counted
	batch       = 100 // repetitions per count of allocations
)

type readiness struct {
	Thread      int     `json:"thread"` // that runs the path
	Allocations float64 `json:"allocations"`
	Refused     string  `json:"refused,omitempty"` // the reason if tracing is not permitted
	Error       string  `json:"error,omitempty"`
}

// playChild is the main function of a child. It returns the exit code.
func playChild(name string, traced bool) int {
	emit := func(r readiness) { _ = json.NewEncoder(os.Stdout).Encode(r) } // fails only if the parent has ended
	p, err := pathNamed(name)
	if err == nil {
		err = p.play(traced, emit)
	}
	if err != nil {
		emit(readiness{Error: err.Error()})
		return 1
	}
	return 0
}

func (p path) play(traced bool, emit func(readiness)) error {
	once, stop, err := p.start(context.Background())
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	defer stop()
	debug.SetGCPercent(-1) // the child is short-lived
	runtime.GC()           // waits for a collection in progress
	for range warmUps {
		once()
	}
	r := readiness{Allocations: allocations(once)}
	if !traced {
		emit(r)
		return nil
	}
	runtime.LockOSThread()
	if err := traceMe(); err != nil {
		r.Refused = err.Error()
		emit(r)
		return nil
	}
	r.Thread = thisThread()
	emit(r) // after PTRACE_TRACEME, so that the parent can wait for the thread
	for range repetitions {
		runtime.Breakpoint()
		once()
	}
	runtime.Breakpoint()
	return nil
}

// allocations returns the allocations of one execution: the minimum of some batches, since
// background work may allocate, too.
func allocations(once func()) float64 {
	least := -1.0
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range batch {
			once()
		}
		runtime.ReadMemStats(&after)
		if n := float64((after.Mallocs - before.Mallocs) / batch); least < 0 || n < least {
			least = n
		}
	}
	return least
}

type cost struct {
	Instructions int     `json:"instructions,omitempty"` // 0 if not counted
	Allocations  float64 `json:"allocations"`
}

var errNoTracing = errors.New("instructions cannot be counted")

// countLimit is the timeout of a child, and traceLimit that of tracing all paths. Tracing takes
// some seconds on an idle machine, and many times that on a busy one.
const (
	countLimit = time.Minute
	traceLimit = 20 * time.Second
)

var errBusy = fmt.Errorf("%w: not all paths were counted within %v", errNoTracing, traceLimit)

var errNotAsked = fmt.Errorf("%w: not requested", errNoTracing)

// countAll counts all paths. Paths that could not be traced have no instructions; the reason is
// returned, too.
func countAll(ctx context.Context, traced bool, step func(name string)) (map[string]cost, error) {
	costs := make(map[string]cost)
	empty := 0
	var untraced error
	if !traced {
		untraced = errNotAsked
	}
	tracing, cancel := context.WithTimeoutCause(ctx, traceLimit, errBusy)
	defer cancel()
	for _, p := range paths() {
		var c cost
		var err error
		if untraced == nil {
			c, err = count(tracing, p.name, true)
			if errors.Is(err, errNoTracing) {
				untraced = err
			}
		}
		if untraced != nil {
			c, err = count(ctx, p.name, false)
		}
		if err != nil {
			return nil, err
		}
		if p.name == "nothing" {
			empty = c.Instructions
		} else {
			c.Instructions = max(0, c.Instructions-empty)
			costs[p.name] = c
		}
		if step != nil {
			step(p.name)
		}
	}
	return costs, untraced
}

func count(ctx context.Context, name string, traced bool) (c cost, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, countLimit, fmt.Errorf("%s: the child has not ended in %v", name, countLimit))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return c, err
	}
	// The tracer is a thread, and must be the one that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if traced {
		release, err := pin()
		if err != nil {
			return c, err
		}
		defer release()
	}
	cmd := exec.CommandContext(ctx, self, childRole, name, fmt.Sprint(traced))
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	if err := cmd.Start(); err != nil {
		return c, err
	}
	defer func() {
		_ = cmd.Process.Kill() // no longer needed
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("%s: no output of the child: %w", name, err)
	}
	var r readiness
	if err := json.Unmarshal(line, &r); err != nil {
		return c, fmt.Errorf("%s: output of the child %q: %w", name, line, err)
	}
	if r.Error != "" {
		return c, errors.New(r.Error)
	}
	if r.Refused != "" {
		return c, fmt.Errorf("%w: %s", errNoTracing, r.Refused)
	}
	c.Allocations = r.Allocations
	if traced {
		if c.Instructions, err = trace(cmd.Process.Pid, r.Thread); err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}
