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

// childRole is the first argument of a child; the second is a path's name.
const childRole = "count-one-path"

const (
	repetitions = 8   // of which the least counts: some find no room left in what the allocator has at hand
	warmUps     = 300 // that do not count
	batch       = 100 // over which allocations are counted
)

type readiness struct {
	Thread      int     `json:"thread"` // that will work
	Allocations float64 `json:"allocations"`
	Refused     string  `json:"refused,omitempty"` // why it cannot be traced
	Error       string  `json:"error,omitempty"`
}

// playChild does a path again and again, and returns the exit code.
func playChild(name string, traced bool) int {
	say := func(r readiness) { _ = json.NewEncoder(os.Stdout).Encode(r) } // it fails only if the parent is gone
	p, err := pathNamed(name)
	if err == nil {
		err = p.play(traced, say)
	}
	if err != nil {
		say(readiness{Error: err.Error()})
		return 1
	}
	return 0
}

func (p path) play(traced bool, say func(readiness)) error {
	once, stop, err := p.start(context.Background())
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	defer stop()
	debug.SetGCPercent(-1) // a child does not live long enough to need it
	runtime.GC()           // the end of a collection that is under way
	for range warmUps {
		once()
	}
	r := readiness{Allocations: allocations(once)}
	if !traced {
		say(r)
		return nil
	}
	runtime.LockOSThread()
	if err := traceMe(); err != nil {
		r.Refused = err.Error()
		say(r)
		return nil
	}
	r.Thread = thisThread()
	say(r) // now, since the parent cannot wait for a thread that is not traced yet
	for range repetitions {
		runtime.Breakpoint()
		once()
	}
	runtime.Breakpoint()
	return nil
}

// allocations returns how many a path makes each time. What runs beside it may
// make some, too, now and then: the least of some batches counts.
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
	Instructions int     `json:"instructions,omitempty"` // 0 if they could not be counted
	Allocations  float64 `json:"allocations"`
}

var errNoTracing = errors.New("instructions cannot be counted here")

// countLimit is how long a child may take before it is taken to hang, and traceLimit
// how long all that are traced may take. At each instruction the child waits for its
// parent and this for the child: some seconds in all, but many times that where others
// want the processors, too.
const (
	countLimit = time.Minute
	traceLimit = 20 * time.Second
)

var errBusy = fmt.Errorf("%w: after %v not all paths were counted, since the machine is busy", errNoTracing, traceLimit)

var errNotAsked = fmt.Errorf("%w: only allocations were asked for", errNoTracing)

// countAll counts all paths. Those that it could not trace have no instructions,
// and why is returned beside them.
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
	ctx, cancel := context.WithTimeoutCause(ctx, countLimit, fmt.Errorf("%s: the child does not end in %v", name, countLimit))
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
	// A tracer is a thread, and the parent of its child.
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
		_ = cmd.Process.Kill() // it is no longer needed
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("%s: the child says nothing: %w", name, err)
	}
	var r readiness
	if err := json.Unmarshal(line, &r); err != nil {
		return c, fmt.Errorf("%s: the child says %q: %w", name, line, err)
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
